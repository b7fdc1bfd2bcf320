// Third-party MCP clients against the binary, over standard input and output and over HTTP.

import { conformance } from './conformance.mjs';
import { end } from './harness.mjs';
import { inspector } from './inspector.mjs';
import { sdk } from './sdk.mjs';
import { stdout } from './stdout.mjs';

// The conformance suite waits more than it computes, so the others run beside it.
const lanes = [{ stdout, sdk, inspector }, { conformance }];
const wanted = process.argv.slice(2);
const run = async (lane) => {
  for (const [name, part] of Object.entries(lane)) {
    if (wanted.length === 0 || wanted.includes(name)) await part();
  }
};
await Promise.all(lanes.map(run));
process.exit(await end());

// Third-party MCP clients against the binary, over standard input and output and over HTTP.

import { conformance } from './conformance.mjs';
import { end } from './harness.mjs';
import { inspector } from './inspector.mjs';
import { sdk } from './sdk.mjs';
import { stdout } from './stdout.mjs';

const all = { stdout, sdk, inspector, conformance };
const wanted = process.argv.slice(2);
for (const [name, part] of Object.entries(all)) {
  if (wanted.length === 0 || wanted.includes(name)) await part();
}
process.exit(await end());

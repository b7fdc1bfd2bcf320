// Tests the web page in a real browser against the real binary: `ADJUTANT_BIN=... node run.mjs [GROUP...]`. Prints one
// line per check. Screenshots in `docs/screenshots` are replaced only with `UPDATE_SCREENSHOTS=1`.

import { failures, launch, lines, open, serve } from "./harness.mjs";
import { awaited } from "./awaited.mjs";
import { branches } from "./branches.mjs";
import { feedback } from "./feedback.mjs";
import { finding } from "./finding.mjs";
import { flow } from "./flow.mjs";
import { hostile } from "./hostile.mjs";
import { live } from "./live.mjs";
import { loading } from "./loading.mjs";
import { long } from "./long.mjs";
import { looks } from "./looks.mjs";
import { markdown } from "./markdown.mjs";
import { memory } from "./memory.mjs";
import { modules } from "./modules.mjs";
import { operation } from "./operation.mjs";
import { others } from "./others.mjs";
import { people } from "./people.mjs";
import { restate } from "./restate.mjs";
import { shell } from "./shell.mjs";
import { states } from "./states.mjs";
import { vendored } from "./vendored.mjs";
import { words } from "./words.mjs";
import { writing } from "./writing.mjs";

if (!process.env.ADJUTANT_BIN) {
  console.error("ADJUTANT_BIN names the binary to try");
  process.exit(2);
}

const groups = {
  vendored,
  words,
  async modules(browser) {
    const service = await serve({ script: lines({ text: "Hello.", repeat: true }) });
    try {
      await modules(await open(browser, service));
    } finally {
      await service.stop();
    }
  },
  markdown,
  flow,
  branches,
  people,
  writing,
  finding,
  loading,
  shell,
  states,
  live,
  long,
  memory,
  feedback,
  awaited,
  others,
  operation,
  hostile,
  looks,
  restate,
};
/** Groups that need more than the binary run only if they are named. */
const only = ["restate"];

const chosen = process.argv.slice(2);
const browser = await launch();
try {
  for (const [name, run] of Object.entries(groups)) {
    if (chosen.length === 0 ? !only.includes(name) : chosen.includes(name)) await run(browser);
  }
} finally {
  await browser.close();
}
console.log(failures() === 0 ? "all is well" : `${failures()} failed`);
process.exit(failures() === 0 ? 0 : 1);

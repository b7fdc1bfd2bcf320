// What the page vendors is what was published: the bytes of the packages that the lock pins.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { check } from "./harness.mjs";

const VENDORED = {
  "htm-preact-standalone.module.js": "htm/preact/standalone.module.js",
  "htm.LICENSE.txt": "htm/LICENSE",
  "streaming-markdown.min.js": "streaming-markdown/smd.min.js",
  "streaming-markdown.LICENSE.txt": "streaming-markdown/license",
};

export async function vendored() {
  await check("vendored files are those of the packages, byte for byte", () => {
    for (const [ours, theirs] of Object.entries(VENDORED)) {
      const one = readFileSync(new URL(`../../crates/service/web/vendor/${ours}`, import.meta.url));
      const other = readFileSync(new URL(`node_modules/${theirs}`, import.meta.url));
      assert.ok(one.equals(other), `${ours} is not ${theirs}`);
    }
  });
}

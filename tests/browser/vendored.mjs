// The page's vendored files are identical to those in the packages that the lock file pins.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { check } from "./harness.mjs";

const VENDORED = {
  "htm-preact-standalone.module.js": "htm/preact/standalone.module.js",
  "htm.LICENSE.txt": "htm/LICENSE",
  "markdown-it.esm.min.js": "markdown-it/dist/browser/markdown-it.esm.min.mjs",
  "markdown-it.LICENSE.txt": "markdown-it/LICENSE",
  "linkify-it.LICENSE.txt": "linkify-it/LICENSE",
  "mdurl.LICENSE.txt": "markdown-it/node_modules/mdurl/LICENSE",
  "entities.LICENSE.txt": "markdown-it/node_modules/entities/LICENSE",
  "uc.micro.LICENSE.txt": "uc.micro/LICENSE.txt",
  "punycode.LICENSE.txt": "punycode.js/LICENSE-MIT.txt",
  "highlight.min.js": "@highlightjs/cdn-assets/es/highlight.min.js",
  "highlight.LICENSE.txt": "@highlightjs/cdn-assets/LICENSE",
  "temml.min.js": "temml/dist/temml.min.js",
  "temml.LICENSE.txt": "temml/LICENSE",
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

// The notes that answers link to, and where they are opened.

import { call } from "./api.js";

// As many as the service looks up at once.
const LINKS_MAX = 100;
// What every address of a note begins with; any other one is none.
const OPENS = "obsidian://open?vault=";

const found = new Map();
let asked = new Map();

/** The address that opens a link's note in Obsidian; `null`: the vault has no such note, or it is unknown. */
export function addressOf(link) {
  if (found.has(link)) return Promise.resolve(found.get(link));
  if (!asked.has(link)) {
    // The links of one answer come together.
    if (asked.size === 0) setTimeout(ask, 0);
    const answer = {};
    answer.promise = new Promise((resolve) => (answer.resolve = resolve));
    asked.set(link, answer);
  }
  return asked.get(link).promise;
}

async function ask() {
  const all = [...asked];
  asked = new Map();
  for (let at = 0; at < all.length; at += LINKS_MAX) {
    const part = all.slice(at, at + LINKS_MAX);
    const addresses = await call("POST", "/v1/notes/links", { body: { links: part.map(([link]) => link) } }).then(({ addresses }) => addresses, () => []);
    part.forEach(([link, { resolve }], at) => {
      const address = addresses[at]?.startsWith(OPENS) ? addresses[at] : null;
      // A note that is not there may be there later.
      if (address !== null) found.set(link, address);
      resolve(address);
    });
  }
}

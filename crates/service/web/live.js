// Keeps what is shown as new as what the service has: it is read again when the person comes back to the page, when the
// browser is online again, and when another tab has changed something.

import { refresh } from "./actions/opening.js";
import { onOtherTab } from "./tabs.js";

/** The events of one return to the page come within so many milliseconds of each other. */
const TOGETHER_MS = 50;

let due = null;
let last = Promise.resolve();

/** Reads anew, soon and once for all that happens at the same time; one reading ends before the next begins. */
function readAnew() {
  // Read when the page is seen again.
  if (document.hidden || due !== null) return;
  due = setTimeout(() => {
    due = null;
    last = last.then(refresh);
  }, TOGETHER_MS);
}

/** Begins to watch for reasons to read anew. */
export function stayLive() {
  document.addEventListener("visibilitychange", readAnew);
  for (const name of ["focus", "online", "pageshow"]) addEventListener(name, readAnew);
  onOtherTab(readAnew);
}

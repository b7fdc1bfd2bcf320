// Unsent drafts per conversation, in this browser only: they survive a reload, and are removed at sign-out.

import { fitting } from "./text.js";

const PREFIX = "adjutant.draft.";
/** So many conversations, the last ones; so many UTF-16 code units of each. */
const KEPT_MAX = 30;
const LENGTH_MAX = 50_000;

const keyOf = (threadId) => `${PREFIX}${threadId ?? "new"}`;

/** Returns the result of `work`; `undefined` where it throws, as when the browser refuses to store. */
function stored(work) {
  try {
    return work();
  } catch {
    return undefined;
  }
}

const drafts = () => Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));

/** Keeps the draft of a conversation (`null`: of the next new one), and what waits there to be sent. */
export function keepDraft(threadId, { text = "", queued = [] }) {
  stored(() => {
    const key = keyOf(threadId);
    if (text === "" && queued.length === 0) return localStorage.removeItem(key);
    if (localStorage.getItem(key) === null) {
      const oldest = drafts().map((key) => [JSON.parse(localStorage.getItem(key)).at, key]).sort();
      for (const [, other] of oldest.slice(0, Math.max(0, oldest.length - KEPT_MAX + 1))) localStorage.removeItem(other);
    }
    localStorage.setItem(key, JSON.stringify({ text: fitting(text, LENGTH_MAX), queued: queued.slice(0, KEPT_MAX).map((text) => fitting(text, LENGTH_MAX)), at: new Date().toISOString() }));
  });
}

/** Returns the draft that was kept for a conversation, and what waits there to be sent; empty if there is none. */
export function draftOf(threadId) {
  const { text, queued } = stored(() => JSON.parse(localStorage.getItem(keyOf(threadId)))) ?? {};
  return { text: typeof text === "string" ? text : "", queued: Array.isArray(queued) ? queued.filter((text) => typeof text === "string") : [] };
}

export function forgetDrafts() {
  stored(() => drafts().forEach((key) => localStorage.removeItem(key)));
}

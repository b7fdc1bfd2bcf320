// What was written while an answer was still coming: it waits, and is sent when the turn has ended.

import { keepDraft } from "./drafts.js";
import { draftNow, LONG, onDraft, set, setDraft, state } from "./state.js";

/** Milliseconds without a change after which a long draft is kept. */
const PAUSE_MS = 1_000;

let last = 0;
/** The keeping of a long draft that is due. */
let later = null;

/** Keeps what is written in the open conversation, and what waits there, such as what could not be sent yet. The words of a message
 * that is being changed are no draft. */
export function keepWritten() {
  clearTimeout(later);
  later = null;
  const waiting = [state.run?.unsent, ...state.queued.map(({ text }) => text)];
  keepDraft(state.threadId, { text: state.editing ? "" : draftNow(), queued: waiting.filter(Boolean) });
}

onDraft((draft) => {
  if (draft.length <= LONG) return keepWritten();
  clearTimeout(later);
  later = setTimeout(keepWritten, PAUSE_MS);
});
// A page that is left does not come back to a pause.
for (const name of ["pagehide", "visibilitychange"]) addEventListener(name, () => (draftNow().length > LONG || later !== null) && keepWritten(), { capture: true });

/** Appends a message to the queue. */
export function enqueue(text) {
  const words = text.trim();
  if (words === "") return;
  last += 1;
  set({ queued: [...state.queued, { id: last, text: words }] });
  setDraft("");
}

/** Removes a message from the queue and returns its text. */
export function takeBack(id) {
  const found = state.queued.find((waiting) => waiting.id === id);
  set({ queued: state.queued.filter((waiting) => waiting !== found) });
  keepWritten();
  return found?.text ?? "";
}

/** Takes the next one that waits; `null`: there is none. */
export const next = () => (state.queued.length === 0 ? null : takeBack(state.queued[0].id));

/** Puts a text in front of the draft. */
export function putInFront(...texts) {
  setDraft([...texts, draftNow()].filter((text) => text.trim() !== "").join("\n\n"));
}

/** Makes what waits the draft: nothing of it is sent by itself. */
export function backToDraft() {
  const texts = state.queued.map(({ text }) => text);
  if (texts.length === 0) return;
  set({ queued: [] });
  putInFront(...texts);
}

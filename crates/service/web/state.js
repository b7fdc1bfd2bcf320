// The state of the page, in one place. Changes name their keys; subscribers are called once per frame.

import { languageNow } from "./words.js";

const listeners = new Set();
const writers = new Set();
let asked = false;

export const NOTHING_OLDER = { cursor: null, count: 0, log: { rows: new Map(), cursor: null }, loading: false };

export const state = {
  /** `/v1/me`, once it is known. */
  me: null,
  /** The budget of the day from `/v1/usage`; `null`: nothing of it is bounded. */
  budget: null,
  /** A problem that stops everything, such as an expired session. */
  fatal: null,
  /** The conversations; of a search (`query`) those with the words in their title, and those in which they were `said`. `of`: the search
   * whose results `list` has. */
  threads: { list: [], of: "", said: [], saidAll: true, cursor: null, query: "", loaded: false, problem: null },
  /** What waits for an answer outside of the listed conversations: calls of other programs. */
  waits: [],
  /** The conversation that is open; `null`: a new one. */
  threadId: null,
  /** The conversation that all versions of the open one branch off; `null`: not known yet, or it is new. */
  rootId: null,
  title: null,
  loading: false,
  /** The turns that were loaded, the last ones of the conversation. */
  turns: [],
  /** What was said before them: where it is (`cursor`; `null`: there is nothing), how many turns were put in front since the
   * conversation was opened, and the rows of the log read so far (`rows` by id, and where there are more). */
  older: NOTHING_OLDER,
  /** The AG-UI id of the conversation's last message: the service does not send again what we have. */
  lastMessageId: null,
  /** The turns in whose place other conversations have another one, by id: `{ thread_ids, current }`. */
  alternatives: new Map(),
  /** The turn whose message is being changed: what is sent next stands in its place, in a branch. `null`: none. */
  editing: null,
  pending: [],
  /** What was chosen for pending calls, until all have an answer: by interrupt id. */
  choices: {},
  /** The run that goes on: `{ id, turnKey, attempt, unsent, stopping }`. `unsent`: the message that the service does not have yet. */
  run: null,
  /** A problem beside the conversation: with an answer, a load, a rename. */
  trouble: null,
  draft: "",
  /** Messages written while an answer was coming, to be sent when it has ended: `{ id, text }`. */
  queued: [],
  /** All that are open, and the last of those that are done; `cursor`: where the others are. */
  tasks: { list: [], cursor: null, loaded: false, problem: null, available: true },
  /** What is remembered of the person, and what was changed last. */
  memory: { list: [], loaded: false, problem: null, last: null },
  /** The state of the service, for operators. */
  operation: {
    /** `overview`, `turns`, `questions` or `people`. */
    view: "overview",
    overview: null,
    filter: { which: "failed", days: "7", request: "" },
    list: [],
    /** The cursor of the next page; `null`: there is none. */
    next: null,
    loaded: false,
    problem: null,
    /** The turn that is looked at: `{ id, user, detail }`. */
    turn: null,
  },
  tab: "tasks",
  /** On narrow screens one pane may lie over the chat: "side" or "panel". */
  drawer: null,
  panelOpen: false,
  /** True if the left side is shown, where there is room for it. */
  sideOpen: true,
  trace: { id: null, detail: null, problem: null, list: [], cursor: null, loaded: false, listProblem: null, filter: { scope: "thread", outcome: "", days: "", tool: "" } },
  help: false,
  /** True while the settings are open. */
  settings: false,
  /** News that a person who looked elsewhere has not seen yet: "answer", "question" or `null`. */
  news: null,
  access: false,
  online: navigator.onLine,
  /** Of the words that are shown. */
  language: languageNow(),
};

/** Changes top-level fields. */
export function set(fields) {
  Object.assign(state, fields);
  changed();
}

/** Changes fields of one of the objects in the state. */
export function setIn(name, fields) {
  state[name] = { ...state[name], ...fields };
  changed();
}

/** UTF-16 units from which on a draft is long: it is read and kept when the person pauses, and not with each key. */
export const LONG = 10_000;

const NO_FIELD = { read() {}, forget() {} };
let field = NO_FIELD;

/** Names the message field, of which a long text is not read with each key: `read` takes over into the draft what was not read
 * yet, `forget` leaves it out. */
export function writeIn(messageField) {
  field = messageField;
  return () => {
    if (field === messageField) field = NO_FIELD;
  };
}

/** Changes the draft without notifying subscribers: a key press redraws nothing but the field. `source`: the field that has it
 * already. */
export function setDraft(draft, source = null) {
  // Text in the field that was not read yet is replaced as well.
  if (source === null) field.forget();
  state.draft = draft;
  for (const writer of writers) writer(draft, source);
}

/** Tells `writer` each new text of the message field, and the field that has it already, if there is one. */
export function onDraft(writer) {
  writers.add(writer);
  return () => writers.delete(writer);
}


/** Returns what is written in the message field now. */
export function draftNow() {
  field.read();
  return state.draft;
}

/** Changes the turn with this key; nothing if it is not shown (any more). */
export function setTurn(key, change) {
  state.turns = state.turns.map((turn) => (turn.key === key ? change(turn) : turn));
  changed();
}

export function subscribe(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function changed() {
  if (asked) return;
  asked = true;
  const tell = () => {
    asked = false;
    for (const listener of listeners) listener();
  };
  // No frames come to a page that is not seen; it still has to be right when it is seen again.
  if (document.hidden) setTimeout(tell, 0);
  else requestAnimationFrame(tell);
}

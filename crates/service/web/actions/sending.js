// Messages of the person: sent, queued, edited and sent again.

import { call, path, uuid } from "../api.js";
import { mayBeReplaced, newTurn, over } from "../conversation.js";
import { backToDraft, enqueue, next, putInFront, takeBack } from "../queue.js";
import { set, setDraft, setIn, state } from "../state.js";
import { beginning, shortened } from "../text.js";
import { answerInWords, asks } from "./answers.js";
import { focusComposer, restFocus } from "./layout.js";
import { openThread, writeOn } from "./opening.js";
import { go, lastMessage, onEnd, openTasks } from "./running.js";
import { openEntry } from "./threads.js";
import { troubled } from "./trouble.js";

/** Characters of a title that is made of a message. */
const TITLE_CHARS_MAX = 60;

/** Sends what was written; while an answer is coming, it waits for its end. */
export function submit(text) {
  return state.run ? enqueue(text) : send(text);
}

/** Takes back what waits to be sent, to be changed. */
export function editQueued(id) {
  putInFront(takeBack(id));
  focusComposer();
}

/** Sends a message. While a confirmation is pending, the service reads it as its answer. */
export async function send(text) {
  const words = text.trim();
  if (words === "" || state.run) return;
  setDraft("");
  set({ trouble: null });
  const { editing } = state;
  if (editing && !(await branchOff(editing))) return setDraft(text);
  // An expired question waits no more; the service ends that turn with the next message.
  const waits = asks().some((call) => new Date(call.expires_at) > Date.now());
  if (waits) return answerInWords(words);
  const isListed = openEntry() !== null;
  const isNew = state.turns.length === 0 && !state.loading && !isListed;
  const threadId = state.threadId ?? uuid();
  const runId = uuid();
  const turn = newTurn(runId, words);
  if (isNew) {
    if (state.threadId === null) history.pushState(null, "", `#/t/${threadId}`);
    const title = titleOf(words);
    set({ threadId, title });
    const begun = { thread_id: threadId, title, updated_at: turn.at, pending: false, isBegun: true };
    if (state.threads.query === "") setIn("threads", { list: [begun, ...state.threads.list.filter((thread) => !thread.isBegun)] });
    // The chosen example is removed, and the focus with it.
    if (document.activeElement?.closest(".examples")) restFocus();
  }
  set({ turns: [...state.turns.map((turn) => (turn.status === "waiting" ? over(turn, "done") : turn)), turn], pending: [], choices: {} });
  const messages = [...lastMessage(), { id: uuid(), role: "user", content: words }];
  await go(turn, { threadId, runId, state: openTasks(), messages, tools: [], context: [], forwardedProps: { time_zone: timeZone() } }, { unsent: words });
}

/** Sends what waited for the end of the turn. If it ended otherwise than with an answer, the person may want something else. */
function sendNext() {
  if (state.run || state.queued.length === 0) return;
  if (state.turns.at(-1)?.status === "done") send(next());
  else backToDraft();
}

onEnd(sendNext);

/** Returns the name of the browser's time zone, which the time of a message is stated in. */
export const timeZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns the title of a conversation until the service has one: the first words on one line, cut between words as the service does. */
function titleOf(words) {
  const line = words.replace(/\s+/g, " ");
  const head = beginning(line, TITLE_CHARS_MAX);
  if (head === line) return line;
  const end = head.lastIndexOf(" ");
  return end < 0 ? shortened(line, TITLE_CHARS_MAX) : `${head.slice(0, end)}…`;
}

/** Opens a new branch of the conversation: what was said before a turn. The conversation stays as it is. */
async function branchOff(turn) {
  try {
    const { thread_id } = await call("POST", path("v1", "threads", state.threadId, "branches"), { body: { before: turn.id, thread_id: uuid() } });
    await openThread(thread_id);
    return state.threadId === thread_id && !state.trouble;
  } catch (problem) {
    troubled(problem);
    return false;
  }
}

/** Has the message of a turn answered anew, beside the answer that it has. */
export async function regenerate(turn) {
  if (!state.run && (await branchOff(turn))) await send(turn.text);
}

/** Sends the message of a failed turn again. The new turn takes the place of the failed one. */
export async function retry(turn) {
  if (state.run) return;
  if (mayBeReplaced(turn)) set({ turns: state.turns.filter((other) => other.key !== turn.key) });
  await send(turn.text);
}

/** Begins to change the message of a turn. What is sent next stands in its place, in a branch; what was said is kept. */
export function editTurn(turn) {
  set({ editing: turn });
  edit(turn.text);
}

/** Leaves the message as it is. What was being written before is there again. */
export function leaveEditing() {
  set({ editing: null });
  writeOn();
  focusComposer();
}

/** Puts a message into the composer, to be edited and sent. */
export function edit(text) {
  setDraft(text);
  focusComposer();
}

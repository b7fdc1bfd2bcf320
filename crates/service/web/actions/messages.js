// The messages of the open conversation, as the service has them.

import { call, path, query } from "../api.js";
import { turnsOf } from "../conversation.js";
import { NOTHING_OLDER, set, setIn, state } from "../state.js";
import { DECISIONS_AT_ONCE } from "./panel.js";
import { troubled } from "./trouble.js";
import { untilLeft } from "./visit.js";

/** The end of a conversation as the service has it. */
export async function read(id) {
  const [{ messages, pending, next_cursor, last_message_id }, log, alternatives] = await Promise.all([
    call("GET", path("v1", "threads", id, "messages")),
    moreOfLog(id, { rows: new Map(), cursor: null }),
    alternativesOf(id),
  ]);
  const older = { ...NOTHING_OLDER, cursor: next_cursor, log };
  return { turns: turnsOf(messages, pending, log.rows), alternatives, pending, older, lastMessageId: last_message_id ?? null };
}

/** The turns that have alternatives, by id. Without them the conversation can still be read. */
export async function alternativesOf(id) {
  try {
    const { alternatives } = await call("GET", path("v1", "threads", id, "branches"));
    return new Map(alternatives.map(({ run_id, ...place }) => [run_id, place]));
  } catch {
    return new Map();
  }
}

/** The rows of the log with those that follow. */
async function moreOfLog(id, { rows, cursor }) {
  try {
    const page = await call("GET", "/v1/decisions" + query({ thread_id: id, limit: DECISIONS_AT_ONCE, cursor }));
    const more = page.decisions.map((row) => [row.decision_id ?? row.id, row]);
    return { rows: new Map([...rows, ...more]), cursor: page.next_cursor };
  } catch {
    // Without the log the conversation can still be read.
    return { rows, cursor: null };
  }
}

/** Puts what was said before the turns that are shown in front of them. */
export async function loadOlder() {
  const { threadId, older } = state;
  const stay = untilLeft();
  if (older.cursor === null || older.loading) return;
  setIn("older", { loading: true });
  try {
    const { messages, next_cursor } = await call("GET", path("v1", "threads", threadId, "messages") + query({ before: older.cursor }));
    let { log } = older;
    const isMissing = ({ run_id }) => run_id && !log.rows.has(run_id);
    while (log.cursor !== null && messages.some(isMissing)) log = await moreOfLog(threadId, log);
    // Meanwhile another conversation may have been opened, or this one read anew.
    if (stay.aborted || state.older.cursor !== older.cursor) return;
    const turns = turnsOf(messages, [], log.rows);
    set({ turns: [...turns, ...state.turns], older: { cursor: next_cursor, count: older.count + turns.length, log, loading: false } });
  } catch (problem) {
    if (stay.aborted) return;
    setIn("older", { loading: false });
    troubled(problem);
  }
}

/** Reads the end of the open conversation anew: the service knows what became of it. */
export async function reread() {
  const id = state.threadId;
  const stay = untilLeft();
  const page = await read(id);
  if (stay.aborted) return;
  const first = page.turns[0]?.id ?? null;
  const at = first === null ? -1 : state.turns.findIndex((turn) => turn.id === first);
  // Older entries that were loaded stay, and so does the place of what has one.
  const keys = new Map(state.turns.filter(({ id }) => id !== null).map(({ id, key }) => [id, key]));
  const turns = page.turns.map((turn) => ({ ...turn, key: keys.get(turn.id) ?? turn.key }));
  const kept = at > 0 ? { turns: [...state.turns.slice(0, at), ...turns], older: state.older } : { turns };
  set({ ...page, ...kept, choices: {} });
}

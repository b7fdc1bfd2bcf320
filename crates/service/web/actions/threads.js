// The list of conversations, and the search in it.

import { call, path, query } from "../api.js";
import { isQuestion } from "../conversation.js";
import { renewPin } from "../pins.js";
import { noteSeen } from "../seen.js";
import { set, setIn, state } from "../state.js";
import { tellTabs } from "../tabs.js";
import { troubled } from "./trouble.js";

const THREADS_AT_ONCE = 40;
const SAID_AT_ONCE = 20;
const NOTHING_SAID = { threads: [], is_complete: true };
/** Milliseconds after which a list with running answers is read again. */
const RUNNING_AGAIN_MS = 4000;

export async function loadThreads({ more = false } = {}) {
  const asked = state.threads.query;
  if (more && (state.threads.loadingMore || state.threads.cursor === null)) return;
  if (more) setIn("threads", { loadingMore: true });
  try {
    const cursor = more ? state.threads.cursor : null;
    const page = await call("GET", "/v1/threads" + query({ limit: THREADS_AT_ONCE, cursor, q: asked }));
    if (asked !== state.threads.query) return; // something else was searched meanwhile
    const list = more ? [...state.threads.list, ...page.threads] : withBegun(page.threads, asked);
    const later = more ? [] : laterThan(page.threads.at(-1), asked);
    const isJoined = later.length > 0;
    setIn("threads", { list: [...list, ...later], of: asked, cursor: isJoined ? state.threads.cursor : page.next_cursor, loaded: true, problem: null });
    if (!more) await loadSaid(asked);
    const here = openEntry();
    if (here) set({ title: here.title, rootId: here.root_id ?? state.rootId });
    // A search is no list of what there is.
    if (asked === "") noteSeen(list, document.hidden || state.run ? null : here);
    watchRunning();
    await loadWaits();
  } catch (problem) {
    if (problem.status === 401) troubled(problem);
    else setIn("threads", { loaded: true, problem });
  } finally {
    if (more) setIn("threads", { loadingMore: false });
  }
}

/** Returns whether an entry of the list stands for the open conversation, whichever version of it is open. */
export const isOpenEntry = ({ thread_id, root_id }) => thread_id === state.threadId || (root_id !== undefined && root_id === state.rootId);

/** Returns the entry of the list that stands for the open conversation; `null`: there is none. */
export const openEntry = () => state.threads.list.find(isOpenEntry) ?? null;

let watching = null;

/** Reads the list again, until no answer is coming any more in a conversation that is not open. */
function watchRunning() {
  clearTimeout(watching);
  const isComing = state.threads.list.some((thread) => thread.running && !(isOpenEntry(thread) && state.run));
  watching = isComing && !document.hidden ? setTimeout(loadThreads, RUNNING_AGAIN_MS) : null;
}

/** Returns the entries that were listed after this conversation before: a list that was opened further stays so when its beginning is read anew. */
function laterThan(last, asked) {
  const { list, of } = state.threads;
  const at = of === asked ? list.findIndex((thread) => thread.thread_id === last?.thread_id) : -1;
  return at < 0 ? [] : list.slice(at + 1);
}

/** Searches in past conversations. Without a conversation search in the service, only titles are searched. */
async function loadSaid(asked) {
  const found = asked.trim()
    ? await call("GET", "/v1/search" + query({ q: asked, limit: SAID_AT_ONCE })).catch((problem) => {
        if (problem.status !== 404) throw problem;
        return NOTHING_SAID;
      })
    : NOTHING_SAID;
  if (asked === state.threads.query) setIn("threads", { said: found.threads, saidAll: found.is_complete });
}

/** The list with the new conversation, until the service has it. */
function withBegun(list, asked) {
  const begun = state.threads.list.find((thread) => thread.isBegun);
  const isKnown = list.some((thread) => thread.thread_id === begun?.thread_id);
  return begun && !isKnown && asked === "" && state.run !== null ? [begun, ...list] : list;
}

/** Loads the questions that wait in conversations that the list leaves out. */
export async function loadWaits() {
  try {
    const { pending } = await call("GET", "/v1/pending");
    const listed = new Set(state.threads.list.map((thread) => thread.thread_id));
    set({ waits: pending.filter((waiting) => isQuestion(waiting) && !listed.has(waiting.thread_id)) });
  } catch (problem) {
    if (problem.status === 401) troubled(problem);
  }
}

export function searchThreads(words) {
  setIn("threads", { query: words });
  return loadThreads();
}

/** Renames a conversation, with all its versions. */
export async function renameThread(thread, title) {
  try {
    await call("PATCH", path("v1", "threads", thread.thread_id) + query({ versions: "all" }), { body: { title } });
    renewPin(thread);
    tellTabs();
    await loadThreads();
  } catch (problem) {
    troubled(problem);
  }
}

// The open conversation: opened, left, deleted, and read again.

import { call, path, Problem, query } from "../api.js";
import { draftOf, keepDraft } from "../drafts.js";
import { markWords, unmark } from "../found.js";
import { noteSeen } from "../seen.js";
import { draftNow, NOTHING_OLDER, set, setDraft, state } from "../state.js";
import { tellTabs } from "../tabs.js";
import { t } from "../words.js";
import { restFocus } from "./layout.js";
import { loadOlder, read, reread } from "./messages.js";
import { listenAgain } from "./running.js";
import { loadTasks } from "./tasks.js";
import { isOpenEntry, loadThreads, openEntry } from "./threads.js";
import { troubled } from "./trouble.js";
import { leave, untilLeft } from "./visit.js";

/** Pixels that are left above a turn that was searched for. */
const ABOVE_FOUND = 24;

export function newThread() {
  close();
  history.pushState(null, "", "/");
  restFocus();
}

function close() {
  const isLeft = state.run !== null;
  unmark();
  leave();
  set({ threadId: null, rootId: null, title: null, turns: [], alternatives: new Map(), editing: null, older: NOTHING_OLDER, lastMessageId: null, pending: [], choices: {}, run: null, trouble: null, loading: false, drawer: null });
  // The list is watched while something goes on without the page.
  if (isLeft) loadThreads();
  writeOn();
}

/** Takes up what was written in the open conversation. What waited to be sent is a draft: what became of its turn is not known here. */
export function writeOn() {
  const { text, queued } = draftOf(state.threadId);
  // In the place of what was written elsewhere, before any of it is kept.
  set({ queued: [], draft: "" });
  setDraft([...queued, text].filter((text) => text !== "").join("\n\n"));
}

export function openThread(id) {
  history.pushState(null, "", `#/t/${id}`);
  return load(id);
}

/** Opens a conversation that a search found, at the turn that matches best, with the words of the search marked. */
export async function openFound({ thread_id: id, run_id }, words) {
  history.pushState(null, "", `#/t/${id}`);
  const isThere = () => state.threadId === id && state.turns.some((turn) => turn.id === run_id);
  await load(id, async () => {
    const stay = untilLeft();
    while (!stay.aborted && !isThere() && state.older.cursor !== null) await loadOlder();
    if (stay.aborted || !isThere()) return;
    const { key } = state.turns.find((turn) => turn.id === run_id);
    // When it is drawn.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const turn = document.getElementById(`turn-${key}`);
      const pane = turn?.closest(".scroll");
      if (!pane) return;
      // Not `scrollIntoView`, which would move the whole page as well.
      pane.scrollTop += turn.getBoundingClientRect().top - pane.getBoundingClientRect().top - ABOVE_FOUND;
      markWords(turn, words);
    }));
  });
}

/** Opens what the address names. */
export async function openFromAddress() {
  const id = /^#\/t\/([0-9a-fA-F-]{36})$/.exec(location.hash)?.[1];
  if (id) await load(id);
  else close();
}

/** Goes to the alternative that is `step` further at a turn. What differs there stays in sight, with the focus. */
export async function openAlternative(turn, step) {
  const { thread_ids, current } = state.alternatives.get(turn.id);
  const id = thread_ids[current + step];
  await openThread(id);
  const same = ([, place]) => place.thread_ids.join() === thread_ids.join();
  const there = [...state.alternatives].find(same)?.[0];
  const place = state.turns.find((turn) => turn.id === there);
  if (state.threadId !== id || !place) return;
  requestAnimationFrame(() => {
    const element = document.getElementById(`turn-${place.key}`);
    element?.scrollIntoView({ block: "nearest" });
    const [before, after] = element?.querySelectorAll(".alternatives button") ?? [];
    const [wanted, other] = step < 0 ? [before, after] : [after, before];
    (wanted?.disabled ? other : wanted)?.focus();
  });
}

/** Opens a conversation; `then` runs when it is there, before what goes on in it. */
async function load(id, then = () => {}) {
  close();
  const stay = untilLeft();
  set({ threadId: id, loading: true });
  writeOn();
  try {
    const [page, about] = await Promise.all([read(id), aboutThread(id)]);
    const { turns } = page;
    if (stay.aborted) return;
    set({ ...page, loading: false, ...about });
    const here = openEntry();
    if (here && turns.at(-1)?.status !== "running" && !document.hidden) noteSeen(state.threads.list, here);
    await then();
    const last = turns.at(-1);
    if (!stay.aborted && last?.status === "running") await listenAgain(last);
  } catch (problem) {
    if (stay.aborted) return;
    set({ loading: false });
    // It was not sent yet; sending creates it.
    if (problem.status === 404 && draftNow() !== "") return;
    troubled(problem.status === 404 ? new Problem({ ...problem, detail: t("chat.gone") }) : problem);
  }
}

/** Returns the title of a conversation and what all its versions branch off, also of one that the list leaves out; `null`: not
 * known. */
async function aboutThread(id) {
  const listed = state.threads.list.find((thread) => thread.thread_id === id);
  if (listed) return { title: listed.title, rootId: listed.root_id ?? null };
  // Without it the conversation can still be read.
  return call("GET", path("v1", "threads", id)).then(({ title, root_id }) => ({ title, rootId: root_id }), () => ({ title: null, rootId: null }));
}

/** Deletes a conversation, with all its versions. */
export async function deleteThread(thread) {
  try {
    await call("DELETE", path("v1", "threads", thread.thread_id) + query({ versions: "all" }));
    keepDraft(thread.thread_id, {});
    tellTabs();
    if (isOpenEntry(thread)) newThread();
    await loadThreads();
  } catch (problem) {
    troubled(problem);
  }
}

/** Reads what is shown anew, where the service has something newer: another tab, device or program may have changed it. */
export async function refresh() {
  if (state.me === null || state.fatal) return;
  await Promise.all([loadThreads(), loadTasks(), refreshOpen()]);
}

/** Reads the open conversation anew if it has gone on, and listens to the turn that runs in it. */
async function refreshOpen() {
  const { threadId: id, lastMessageId } = state;
  const stay = untilLeft();
  const isIdle = () => !stay.aborted && state.run === null && !state.loading;
  if (id === null || !isIdle() || state.turns.length === 0) return;
  try {
    const { last_message_id, pending } = await call("GET", path("v1", "threads", id, "messages") + query({ limit: 1 }));
    const ids = (calls) => calls.map((call) => call.interrupt_id).join();
    const isSame = (last_message_id ?? null) === lastMessageId && ids(pending) === ids(state.pending);
    if (isSame || !isIdle()) return;
    await reread();
    const last = state.turns.at(-1);
    if (isIdle() && last?.status === "running") await listenAgain(last);
  } catch (problem) {
    if (stay.aborted) return;
    if (problem.status === 404) troubled(new Problem({ ...problem, detail: t("chat.gone") }));
    else if (problem.status === 401) troubled(problem);
    // Else what was read before is shown on.
  }
}

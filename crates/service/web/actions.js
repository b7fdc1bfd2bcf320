// What the person can do, and what the page does by itself. All requests of the page start here.

import { call, path, Problem, query, send as request, uuid } from "./api.js";
import { afterEvent, isQuestion, mayBeReplaced, newTurn, over, pendingOf, resumed, turnsOf } from "./conversation.js";
import { draftOf, forgetDrafts, keepDraft } from "./drafts.js";
import { patched } from "./patch.js";
import { renewPin } from "./pins.js";
import { backToDraft, enqueue, keepWritten, next, putInFront, takeBack } from "./queue.js";
import { markWords, unmark } from "./found.js";
import { follow } from "./run.js";
import { noteSeen } from "./seen.js";
import { remember, setting } from "./settings.js";
import { draftNow, NOTHING_OLDER, set, setDraft, setIn, setTurn, state } from "./state.js";
import { tellTabs } from "./tabs.js";
import { shortened } from "./text.js";
import { languageNow, loadWords, t } from "./words.js";

const THREADS_AT_ONCE = 40;
const SAID_AT_ONCE = 20;
const NOTHING_SAID = { threads: [], is_complete: true };
const DECISIONS_AT_ONCE = 50;
const DONE_AT_ONCE = 50;
/** Pixels that are left above a turn that was searched for. */
const ABOVE_FOUND = 24;
/** Milliseconds after which a list with running answers is read again. */
const RUNNING_AGAIN_MS = 4000;
/** The model has found a title by then, if it is quick; else the list shows it the next time. */
const TITLE_AFTER_MS = 4000;

/** Stops listening to the run of the conversation that was open; the run itself goes on. */
let listening = new AbortController();
/** Only the newest of several loads counts. */
let opening = 0;

// --- beginning -------------------------------------------------------------------------------------------------------

export async function begin() {
  set({ fatal: null });
  try {
    set({ me: await call("GET", "/v1/me"), panelOpen: setting("panel", false), sideOpen: setting("side", true) });
  } catch (problem) {
    set({ fatal: problem });
    return;
  }
  loadThreads();
  loadTasks();
  loadBudget();
  storeTimeZone();
  await openFromAddress();
}

/** Stores the browser's time zone, so that the time of what the person writes in other programs is known too. */
async function storeTimeZone() {
  try {
    const { time_zone: stored } = await call("GET", "/v1/settings");
    if (stored !== timeZone()) await call("PATCH", "/v1/settings", { time_zone: timeZone() });
  } catch {
    // The page states the zone with each message itself.
  }
}

export async function signIn(token) {
  await request("POST", "/v1/session", { body: { token: token.trim() } });
  await begin();
}

/** Signs this browser out, or all of the person's; and leads to where they sign out at their provider too, if there is such a place. */
export async function signOut(everywhere = false) {
  try {
    const there = await call("DELETE", "/v1/session" + (everywhere ? "?everywhere=true" : ""));
    forgetDrafts();
    location.assign(there?.provider_sign_out ?? "/");
  } catch (problem) {
    troubled(problem);
  }
}

/** Has the page in another language; `null`: in the browser's. */
export async function chooseLanguage(name) {
  remember("language", name);
  await loadWords();
  set({ language: languageNow() });
}

/** Shows a problem of a request that is not part of a turn. */
export function troubled(problem) {
  if (problem.name === "AbortError") return;
  if (problem.status === 401) set({ fatal: problem });
  else set({ trouble: problem });
}

// --- conversations ---------------------------------------------------------------------------------------------------

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
const openEntry = () => state.threads.list.find(isOpenEntry) ?? null;

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

/** What waits in conversations that the list leaves out. */
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

export function newThread() {
  close();
  history.pushState(null, "", "/");
  restFocus();
}

function close() {
  const isLeft = state.run !== null;
  unmark();
  listening.abort();
  listening = new AbortController();
  opening += 1;
  set({ threadId: null, rootId: null, title: null, turns: [], alternatives: new Map(), editing: null, older: NOTHING_OLDER, lastMessageId: null, pending: [], choices: {}, run: null, trouble: null, loading: false, drawer: null });
  // The list is watched while something goes on without the page.
  if (isLeft) loadThreads();
  writeOn();
}

/** Takes up what was written in the open conversation. What waited to be sent is a draft: what became of its turn is not known here. */
function writeOn() {
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
    const mine = opening;
    while (mine === opening && !isThere() && state.older.cursor !== null) await loadOlder();
    if (mine !== opening || !isThere()) return;
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

/** Opens a conversation; `then` runs when it is there, before what goes on in it. */
async function load(id, then = () => {}) {
  close();
  const mine = opening;
  set({ threadId: id, loading: true });
  writeOn();
  try {
    const [page, about] = await Promise.all([read(id), aboutThread(id)]);
    const { turns } = page;
    if (mine !== opening) return;
    set({ ...page, loading: false, ...about });
    const here = openEntry();
    if (here && turns.at(-1)?.status !== "running" && !document.hidden) noteSeen(state.threads.list, here);
    await then();
    const last = turns.at(-1);
    if (mine === opening && last?.status === "running") await listenAgain(last);
  } catch (problem) {
    if (mine !== opening) return;
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

/** The end of a conversation as the service has it. */
async function read(id) {
  const [{ messages, pending, next_cursor, last_message_id }, log, alternatives] = await Promise.all([
    call("GET", path("v1", "threads", id, "messages")),
    moreOfLog(id, { rows: new Map(), cursor: null }),
    alternativesOf(id),
  ]);
  const older = { ...NOTHING_OLDER, cursor: next_cursor, log };
  return { turns: turnsOf(messages, pending, log.rows), alternatives, pending, older, lastMessageId: last_message_id ?? null };
}

/** The turns that have alternatives, by id. Without them the conversation can still be read. */
async function alternativesOf(id) {
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
  const mine = opening;
  if (older.cursor === null || older.loading) return;
  setIn("older", { loading: true });
  try {
    const { messages, next_cursor } = await call("GET", path("v1", "threads", threadId, "messages") + query({ before: older.cursor }));
    let { log } = older;
    const isMissing = ({ run_id }) => run_id && !log.rows.has(run_id);
    while (log.cursor !== null && messages.some(isMissing)) log = await moreOfLog(threadId, log);
    // Meanwhile another conversation may have been opened, or this one read anew.
    if (mine !== opening || state.older.cursor !== older.cursor) return;
    const turns = turnsOf(messages, [], log.rows);
    set({ turns: [...turns, ...state.turns], older: { cursor: next_cursor, count: older.count + turns.length, log, loading: false } });
  } catch (problem) {
    if (mine !== opening) return;
    setIn("older", { loading: false });
    troubled(problem);
  }
}

/** Reads the end of the open conversation anew: the service knows what became of it. */
async function reread() {
  const id = state.threadId;
  const mine = opening;
  const page = await read(id);
  if (mine !== opening) return;
  const first = page.turns[0]?.id ?? null;
  const at = first === null ? -1 : state.turns.findIndex((turn) => turn.id === first);
  // Older entries that were loaded stay, and so does the place of what has one.
  const keys = new Map(state.turns.filter(({ id }) => id !== null).map(({ id, key }) => [id, key]));
  const turns = page.turns.map((turn) => ({ ...turn, key: keys.get(turn.id) ?? turn.key }));
  const kept = at > 0 ? { turns: [...state.turns.slice(0, at), ...turns], older: state.older } : { turns };
  set({ ...page, ...kept, choices: {} });
}

/** Reads what is shown anew, where the service has something newer: another tab, device or program may have changed it. */
export async function refresh() {
  if (state.me === null || state.fatal) return;
  await Promise.all([loadThreads(), loadTasks(), refreshOpen()]);
}

/** Reads the open conversation anew if it has gone on, and listens to the turn that runs in it. */
async function refreshOpen() {
  const { threadId: id, lastMessageId } = state;
  const mine = opening;
  const isIdle = () => mine === opening && state.run === null && !state.loading;
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
    if (mine !== opening) return;
    if (problem.status === 404) troubled(new Problem({ ...problem, detail: t("chat.gone") }));
    else if (problem.status === 401) troubled(problem);
    // Else what was read before is shown on.
  }
}

// --- turns -----------------------------------------------------------------------------------------------------------

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
  // What is too late waits no more; the service ends that turn with the next message.
  const waits = asks().some((call) => new Date(call.expires_at) > Date.now());
  if (waits) return answerInWords(words);
  const isListed = openEntry() !== null;
  const isNew = state.turns.length === 0 && !state.loading && !isListed;
  const threadId = state.threadId ?? uuid();
  const runId = uuid();
  const turn = newTurn(runId, words);
  if (isNew) {
    if (state.threadId === null) history.pushState(null, "", `#/t/${threadId}`);
    set({ threadId });
    const begun = { thread_id: threadId, title: titleOf(words), updated_at: turn.at, pending: false, isBegun: true };
    if (state.threads.query === "") setIn("threads", { list: [begun, ...state.threads.list.filter((thread) => !thread.isBegun)] });
    // The chosen example is removed, and the focus with it.
    if (document.activeElement?.closest(".examples")) restFocus();
  }
  set({ turns: [...state.turns.map((turn) => (turn.status === "waiting" ? over(turn, "done") : turn)), turn], pending: [], choices: {} });
  const messages = [...lastMessage(), { id: uuid(), role: "user", content: words }];
  await go(turn, { threadId, runId, state: openTasks(), messages, tools: [], context: [], forwardedProps: { time_zone: timeZone() } }, { unsent: words });
}

/** Returns the name of the browser's time zone, which the time of a message is stated in. */
const timeZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Returns the title of a conversation until the service has one: the first line, cut to 60 characters. */
function titleOf(words) {
  const line = words.split("\n")[0].trim();
  return shortened(line, 60);
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

/** What says to the service that we have everything up to there. */
function lastMessage() {
  return state.lastMessageId === null ? [] : [{ id: state.lastMessageId, role: "assistant", content: "" }];
}

/** Returns true if `bare` is one of the words under `key`, in the page's language or in English. */
const isAnswer = (bare, key, english) => [...english, ...t(key).split(" ")].includes(bare);

/** Returns the calls that wait for the person, and not for the result that another program brings. */
const asks = () => state.pending.filter(isQuestion);

/** A bare yes or no is the button; anything else is read by the service, which executes nothing that is unclear. */
async function answerInWords(words) {
  const bare = words.toLowerCase().replace(/[.!]+$/, "");
  const allAsk = asks().every((call) => call.kind === "confirmation");
  const approved = isAnswer(bare, "answer.yes", ["yes", "y"]);
  if (allAsk && (approved || isAnswer(bare, "answer.no", ["no", "n"]))) {
    return resume(Object.fromEntries(asks().map((call) => [call.interrupt_id, { approved }])));
  }
  const turn = state.turns.at(-1);
  set({ run: { id: null, turnKey: turn?.key, attempt: 0, unsent: null, stopping: false } });
  try {
    await call("POST", "/v1/chat", { body: { thread_id: state.threadId, message: words } });
    await reread();
    if (asks().length > 0) {
      set({ trouble: new Problem({ code: "unclear", title: t("ask.unclear"), detail: t("ask.unclear_why") }) });
    }
  } catch (problem) {
    await reread().catch(() => {});
    troubled(problem);
  } finally {
    set({ run: null });
    afterwards();
    goOn();
  }
}

/** Chooses for one pending call. All that wait are answered together, so the first choices are kept until the last. */
export const answer = (interruptId, payload) => answerAll([interruptId], payload);

/** Chooses the same for several pending calls at once. */
export async function answerAll(interruptIds, payload) {
  if (state.run) return;
  const choices = { ...state.choices, ...Object.fromEntries(interruptIds.map((id) => [id, payload])) };
  set({ choices });
  if (asks().every((call) => choices[call.interrupt_id])) await resume(choices);
}

/** Asks for the question that a pending call with other arguments would be. Nothing is executed. */
export function previewEdited(interruptId, args) {
  return call("POST", path("v1", "pending", interruptId, "preview"), { body: { thread_id: state.threadId, args } });
}

/** Takes a choice back, as long as others are open. */
export function reconsider(interruptId) {
  const { [interruptId]: _, ...choices } = state.choices;
  set({ choices });
}

async function resume(choices) {
  const turn = state.turns.at(-1);
  const before = { turn, pending: state.pending };
  const runId = uuid();
  const resume = asks().map(({ interrupt_id }) => ({ interruptId: interrupt_id, status: "resolved", payload: choices[interrupt_id] }));
  set({ pending: [], choices: {}, trouble: null });
  setTurn(turn.key, (turn) => resumed(turn, before.pending, choices));
  restFocus();
  const input = { threadId: state.threadId, runId, state: openTasks(), messages: lastMessage(), tools: [], context: [], forwardedProps: {}, resume };
  const problem = await go(state.turns.at(-1), input, { isAnswer: true });
  if (problem) {
    // Nothing came of the answers: the service says what still waits.
    await reread().catch(() => set({ pending: before.pending, turns: state.turns.map((other) => (other.key === turn.key ? before.turn : other)) }));
    troubled(problem);
    backToDraft();
  }
}

/** Listens to the open turn of a conversation that was loaded. */
async function listenAgain(turn) {
  set({ run: { id: turn.id, turnKey: turn.key, attempt: 0, unsent: null, stopping: false } });
  await go(turn, null, { runId: turn.id });
}

/** Follows a run to its end; returns the problem if it could not start. `unsent`: the message that it sends. */
async function go(turn, input, { runId = input?.runId, isAnswer = false, unsent = null } = {}) {
  const { key } = turn;
  const signal = listening.signal;
  const mine = opening;
  let wasLost = false;
  let isNewer = false;
  let isChanged = false;
  set({ run: { id: runId, turnKey: key, attempt: 0, unsent, stopping: false } });
  // What the service does not have yet is kept: a page that is closed before has lost nothing.
  if (unsent !== null) keepWritten();
  try {
    await follow({
      runId,
      input,
      signal,
      onConnection: (attempt, isSent) => {
        wasLost ||= isSent && attempt > 0;
        if (!state.run) return;
        const isNews = isSent && state.run.unsent !== null;
        setIn("run", { attempt, unsent: isSent ? null : state.run.unsent });
        if (!isNews) return;
        keepWritten();
        tellTabs();
        loadThreads();
      },
      onEvent: (event) => {
        if (signal.aborted) return;
        // Told again from its start, the changes of a run are changes of what was there before.
        if (input === null) isChanged ||= event.type === "STATE_DELTA";
        else onState(event);
        // It comes where the service has something else than what is shown.
        isNewer ||= event.type === "MESSAGES_SNAPSHOT";
        state.lastMessageId = lastMessageOf(event) ?? state.lastMessageId;
        setTurn(key, (turn) => afterEvent(turn, event));
        // It was accepted: a new conversation is in the list before it is answered.
        if (event.type === "STEP_STARTED" && !state.threads.query && !state.threads.list.some((thread) => thread.thread_id === state.threadId)) loadThreads();
        if (event.type === "RUN_FINISHED" && event.outcome?.type === "interrupt") {
          set({ pending: event.outcome.interrupts.map(pendingOf) });
        }
      },
    });
  } catch (problem) {
    if (signal.aborted) return null;
    const isGone = problem.status === 404 && (input === null || state.turns.find((turn) => turn.key === key)?.parts.length > 0);
    if (isGone) {
      // The service was restarted, or has sent all the events it retains. The turn's outcome is in the messages.
      await waitForTurn(key, signal);
    } else if (problem.status === 401) {
      set({ fatal: problem });
    } else if (isAnswer) {
      set({ run: null });
      return problem;
    } else {
      setTurn(key, (turn) => ({ ...over(turn, "failed"), problem: plain(problem) }));
    }
  }
  if (mine !== opening) return null;
  set({ run: null });
  // A replayed run may have fewer events than the live one.
  if (input === null || wasLost || isNewer) await reread().catch(() => {});
  if (isChanged) loadTasks();
  afterwards();
  if (mine === opening) goOn();
  return null;
}

/** Sends what waited for the end of the turn. If it ended otherwise than with an answer, the person may want something else. */
function goOn() {
  if (state.run || state.queued.length === 0) return;
  if (state.turns.at(-1)?.status === "done") send(next());
  else backToDraft();
}

/** Takes a message back that never got to the service. */
function unsend() {
  const { turnKey } = state.run;
  const turn = state.turns.find((turn) => turn.key === turnKey);
  listening.abort();
  listening = new AbortController();
  opening += 1;
  setIn("threads", { list: state.threads.list.filter((thread) => !thread.isBegun) });
  set({ run: null, turns: state.turns.filter((other) => other !== turn) });
  backToDraft();
  putInFront(turn?.text ?? "");
  focusComposer();
}

function plain(problem) {
  const { code, title, message, hint, retry_after, budget, request_id, run_id, status } = problem;
  return { code: code ?? "internal", title: title ?? t("problem.page"), detail: message, hint, retry_after, budget, request_id, run_id, status };
}

/** Asks for the messages until the turn has an end. */
async function waitForTurn(key, signal) {
  for (let wait = 500; !signal.aborted; wait = Math.min(wait * 2, 5000)) {
    try {
      await reread();
      if (state.turns.at(-1)?.status !== "running") return;
    } catch (problem) {
      if (problem.status && problem.status < 500) throw problem;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** The id of the message that the conversation ends with after this event, if it is about one. */
function lastMessageOf(event) {
  if (event.type === "TEXT_MESSAGE_START" || event.type === "TOOL_CALL_RESULT") return event.messageId;
  if (event.type === "TOOL_CALL_START") return event.parentMessageId;
  return event.type === "MESSAGES_SNAPSHOT" ? event.messages.at(-1)?.id : undefined;
}

function onState(event) {
  const done = state.tasks.list.filter((task) => task.completed);
  if (event.type === "STATE_SNAPSHOT" && event.snapshot?.tasks) setIn("tasks", { list: [...event.snapshot.tasks, ...done], loaded: true, problem: null });
  if (event.type === "STATE_DELTA") {
    try {
      const { tasks } = patched(openTasks(), event.delta);
      setIn("tasks", { list: [...tasks, ...done], loaded: true, problem: null });
      openForTasks();
    } catch {
      loadTasks(); // we missed something; the service has the whole list
      return;
    }
    // What is not open any more is done or gone.
    if (event.delta.some(({ op }) => op === "remove")) loadTasks();
  }
}

/** The state of a run: the tasks that are open, in the order of their numbers. The service does not send again what we have. */
function openTasks() {
  const { loaded, available, list } = state.tasks;
  return loaded && available ? { tasks: list.filter((task) => !task.completed) } : {};
}

/** A turn ended: the lists that may have changed. */
function afterwards() {
  tellTabs();
  loadThreads();
  if (state.me.model_titles && (state.turns.length === 2 || state.turns.length === 3)) setTimeout(loadThreads, TITLE_AFTER_MS);
  const { threadId } = state;
  alternativesOf(threadId).then((alternatives) => {
    if (threadId === state.threadId) set({ alternatives });
  });
  if (state.tab === "trace" && state.panelOpen) loadDecisions();
  if (state.budget !== null) loadBudget();
}

/** Reads what is left of the day's budget, if there is one. */
async function loadBudget() {
  try {
    const { budget } = await call("GET", "/v1/usage");
    set({ budget });
  } catch {
    // What was known before is shown on.
  }
}

/** Stops the run. It ends with the event that says so. */
export async function stop() {
  const run = state.run;
  if (!run?.id || run.stopping) return;
  if (run.unsent !== null && run.attempt > 0) return unsend();
  setIn("run", { stopping: true });
  try {
    await request("POST", path("v1", "runs", run.id, "cancel"));
  } catch (problem) {
    if (state.run) setIn("run", { stopping: false });
    troubled(problem);
  }
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

/** What had the focus is gone: the message field has it next, or, where that would bring up a keyboard, the conversation. */
function restFocus() {
  if (matchMedia("(pointer: fine)").matches) focusComposer();
  else requestAnimationFrame(() => document.querySelector(".scroll")?.focus());
}

export function focusComposer() {
  requestAnimationFrame(() => document.getElementById("composer")?.focus());
}

// --- tasks -----------------------------------------------------------------------------------------------------------

export async function loadTasks() {
  try {
    const [open, done] = await Promise.all([
      call("GET", "/v1/tasks?status=pending"),
      call("GET", "/v1/tasks" + query({ status: "completed", limit: DONE_AT_ONCE })),
    ]);
    setIn("tasks", { list: [...open.tasks, ...done.tasks], cursor: done.next_cursor, loaded: true, problem: null, available: true });
    openForTasks();
  } catch (problem) {
    if (problem.status === 401) return; // said elsewhere
    if (problem.status === 404) setIn("tasks", { available: false, loaded: true });
    else setIn("tasks", { loaded: true, problem });
  }
}

/** Puts the tasks that were completed before those that are shown in front of them. */
export async function loadDoneTasks() {
  const { cursor } = state.tasks;
  try {
    const { tasks, next_cursor } = await call("GET", "/v1/tasks" + query({ status: "completed", limit: DONE_AT_ONCE, cursor }));
    if (cursor !== state.tasks.cursor) return; // the list was read anew meanwhile
    const [open, done] = [false, true].map((completed) => state.tasks.list.filter((task) => task.completed === completed));
    setIn("tasks", { list: [...open, ...tasks, ...done], cursor: next_cursor });
  } catch (problem) {
    setIn("tasks", { problem });
  }
}

/** Calls a tool as the person; gives its result, or throws a `Problem` (a failed tool is one too). `confirm`: that of the
 * problem which said what the call would touch. */
export async function invoke(tool, args, confirm) {
  const { result, summary } = await call("POST", path("v1", "tools", tool, "invoke"), { body: { args, confirm } });
  const detail = summary ?? result.error;
  if (!result.success) throw new Problem({ code: "tool_failed", title: t("problem.not_done"), detail });
  tellTabs();
  await loadTasks();
  return result;
}

/** The person does not want what a call would do: it waits no more. */
export async function withdraw({ thread_id, confirm }) {
  try {
    await call("POST", "/v1/chat", { body: { thread_id, resume: [{ interrupt_id: confirm, approved: false }] } });
  } catch (problem) {
    troubled(problem);
  }
}

// --- trace -----------------------------------------------------------------------------------------------------------

export function showTab(tab) {
  set({ tab, panelOpen: true, drawer: isNarrow() ? "panel" : state.drawer });
  remember("panel", true);
  if (tab === "trace" && !state.trace.id) loadDecisions();
}

/** Has the right side open with the first task, unless the person has closed or opened it. */
function openForTasks() {
  if (!state.panelOpen && setting("panel", null) === null && state.tasks.list.length > 0) set({ panelOpen: true });
}

/** Folds the left side, or has it there again, and moves the focus to the button for the other. */
export function toggleSide() {
  set({ sideOpen: !state.sideOpen });
  remember("side", state.sideOpen);
  requestAnimationFrame(() => document.querySelector(state.sideOpen ? ".side-head .only-wide" : ".chat-head .only-wide")?.focus());
}

/** Moves the focus to the search, wherever it is. */
export function focusSearch() {
  if (matchMedia("(max-width: 760px)").matches) set({ drawer: "side" });
  else if (!state.sideOpen) toggleSide();
  // After the focus that comes with the side itself.
  requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector(".search input")?.select()));
}

export function togglePanel() {
  if (isNarrow()) {
    set({ drawer: state.drawer === "panel" ? null : "panel" });
    return;
  }
  set({ panelOpen: !state.panelOpen });
  remember("panel", state.panelOpen);
}

export const isNarrow = () => matchMedia("(max-width: 1000px)").matches;

export async function openTrace(id) {
  setIn("trace", { id, detail: null, problem: null });
  showTab("trace");
  try {
    const detail = await call("GET", path("v1", "decisions", id));
    if (state.trace.id === id) setIn("trace", { detail });
  } catch (problem) {
    if (state.trace.id === id) setIn("trace", { problem });
  }
}

export function closeTrace() {
  setIn("trace", { id: null, detail: null, problem: null });
  return loadDecisions();
}

export function filterTrace(filter) {
  setIn("trace", { filter: { ...state.trace.filter, ...filter } });
  return loadDecisions();
}

export async function loadDecisions({ more = false } = {}) {
  const { filter } = state.trace;
  const since = filter.days ? new Date(Date.now() - filter.days * 86_400_000).toISOString() : null;
  if (filter.scope === "thread" && state.threadId === null) {
    setIn("trace", { list: [], cursor: null, loaded: true, listProblem: null });
    return;
  }
  try {
    const page = await call("GET", "/v1/decisions" + query({
      limit: DECISIONS_AT_ONCE,
      cursor: more ? state.trace.cursor : null,
      thread_id: filter.scope === "thread" ? state.threadId : null,
      outcome: filter.outcome,
      tool: filter.tool,
      since,
    }));
    if (filter !== state.trace.filter) return;
    const list = more ? [...state.trace.list, ...page.decisions] : page.decisions;
    setIn("trace", { list, cursor: page.next_cursor, loaded: true, listProblem: null });
  } catch (problem) {
    setIn("trace", { loaded: true, listProblem: problem });
  }
}

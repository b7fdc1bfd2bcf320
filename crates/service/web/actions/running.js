// The run of the open conversation, from its start or from where it is, to its end.

import { path, send as request } from "../api.js";
import { afterEvent, over, pendingOf } from "../conversation.js";
import { patched } from "../patch.js";
import { backToDraft, keepWritten, putInFront } from "../queue.js";
import { follow } from "../run.js";
import { set, setIn, setTurn, state } from "../state.js";
import { tellTabs } from "../tabs.js";
import { t } from "../words.js";
import { loadBudget } from "./budget.js";
import { focusComposer } from "./layout.js";
import { alternativesOf, reread } from "./messages.js";
import { loadDecisions, openForTasks } from "./panel.js";
import { loadTasks } from "./tasks.js";
import { loadThreads } from "./threads.js";
import { troubled } from "./trouble.js";
import { leave, untilLeft } from "./visit.js";

/** The model has found a title by then, if it is quick; else the list shows it the next time. */
const TITLE_AFTER_MS = 4000;

/** Listens to the open turn of a conversation that was loaded. */
export async function listenAgain(turn) {
  set({ run: { id: turn.id, turnKey: turn.key, attempt: 0, unsent: null, stopping: false } });
  await go(turn, null, { runId: turn.id });
}

/** Follows a run to its end; returns the problem if it could not start. `unsent`: the message that it sends. */
export async function go(turn, input, { runId = input?.runId, isAnswer = false, unsent = null } = {}) {
  const { key } = turn;
  const stay = untilLeft();
  let wasLost = false;
  let isNewer = false;
  let isChanged = false;
  set({ run: { id: runId, turnKey: key, attempt: 0, unsent, stopping: false } });
  // Kept until the service has it: a page that is closed before has lost nothing.
  if (unsent !== null) keepWritten();
  try {
    await follow({
      runId,
      input,
      signal: stay,
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
        if (stay.aborted) return;
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
    if (stay.aborted) return null;
    const isGone = problem.status === 404 && (input === null || state.turns.find((turn) => turn.key === key)?.parts.length > 0);
    if (isGone) {
      // The service was restarted, or has sent all the events it retains. The turn's outcome is in the messages.
      await waitForTurn(key, stay);
    } else if (problem.status === 401) {
      troubled(problem);
    } else if (isAnswer) {
      set({ run: null });
      return problem;
    } else {
      setTurn(key, (turn) => ({ ...over(turn, "failed"), problem: plain(problem) }));
    }
  }
  if (stay.aborted) return null;
  set({ run: null });
  // A replayed run may have fewer events than the live one.
  if (input === null || wasLost || isNewer) await reread().catch(() => {});
  if (isChanged) loadTasks();
  afterwards();
  if (!stay.aborted) goOn();
  return null;
}

/** Runs when a run has ended. It may start the next one, and so belongs to a module that uses this one. */
let atEnd = () => {};

/** Has `work` done whenever a run of the open conversation has ended. */
export function onEnd(work) {
  atEnd = work;
}

/** Does what comes after the end of a run. */
export const goOn = () => atEnd();

/** Takes a message back that never got to the service. */
function unsend() {
  const { turnKey } = state.run;
  const turn = state.turns.find((turn) => turn.key === turnKey);
  leave();
  setIn("threads", { list: state.threads.list.filter((thread) => !thread.isBegun) });
  const turns = state.turns.filter((other) => other !== turn);
  set({ run: null, turns, title: turns.length === 0 ? null : state.title });
  backToDraft();
  putInFront(turn?.text ?? "");
  focusComposer();
}

function plain(problem) {
  const { code, title, message, hint, retry_after, budget, request_id, run_id, status } = problem;
  return { code: code ?? "internal", title: title ?? t("problem.page"), detail: message, hint, retry_after, budget, request_id, run_id, status };
}

/** Asks for the messages until the turn has an end. */
async function waitForTurn(key, stay) {
  for (let wait = 500; !stay.aborted; wait = Math.min(wait * 2, 5000)) {
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

/** Returns the message that tells the service up to where the page has the conversation. */
export function lastMessage() {
  return state.lastMessageId === null ? [] : [{ id: state.lastMessageId, role: "assistant", content: "" }];
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
    // A task that is not open any more is done or gone.
    if (event.delta.some(({ op }) => op === "remove")) loadTasks();
  }
}

/** The state of a run: the tasks that are open, in the order of their numbers. The service does not send again what we have. */
export function openTasks() {
  const { loaded, available, list } = state.tasks;
  return loaded && available ? { tasks: list.filter((task) => !task.completed) } : {};
}

/** A turn ended: the lists that may have changed. */
export function afterwards() {
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

// The tasks, and what the person does with them.

import { call, path, Problem, query } from "../api.js";
import { setIn, state } from "../state.js";
import { tellTabs } from "../tabs.js";
import { t } from "../words.js";
import { openForTasks } from "./panel.js";
import { troubled } from "./trouble.js";

const DONE_AT_ONCE = 50;

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

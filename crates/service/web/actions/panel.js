// The right side: its tabs, and the log with the trace of a turn.

import { call, path, query } from "../api.js";
import { remember, setting } from "../settings.js";
import { set, setIn, state } from "../state.js";
import { isNarrow } from "./layout.js";

export const DECISIONS_AT_ONCE = 50;

export function showTab(tab) {
  set({ tab, panelOpen: true, drawer: isNarrow() ? "panel" : state.drawer });
  remember("panel", true);
  if (tab === "trace" && !state.trace.id) loadDecisions();
}

/** Has the right side open with the first task, unless the person has closed or opened it. */
export function openForTasks() {
  if (!state.panelOpen && setting("panel", null) === null && state.tasks.list.length > 0) set({ panelOpen: true });
}

export function togglePanel() {
  if (isNarrow()) {
    set({ drawer: state.drawer === "panel" ? null : "panel" });
    return;
  }
  set({ panelOpen: !state.panelOpen });
  remember("panel", state.panelOpen);
}

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

// The tasks: live from the runs, changed through the same tools the model uses, with the person as caller.

import { invoke, loadDoneTasks, loadTasks, withdraw } from "../actions/tasks.js";
import { taskChanges } from "../conversation.js";
import { moment, when } from "../format.js";
import { setIn, state } from "../state.js";
import { t } from "../words.js";
import { classes, html, say, useEffect, useMemo, useRef, useState } from "./base.js";
import { IconButton } from "./button.js";
import { Icon } from "./icons.js";
import { ProblemCard } from "./problem.js";

export function Tasks() {
  const { tasks, turns } = state;
  const [problem, setProblem] = useState(null);
  const changes = useMemo(() => taskChanges(turns), [turns]);
  const act = async (what, tool, args, confirm) => {
    setProblem(null);
    try {
      const result = await invoke(tool, args, confirm);
      say(what);
      return result;
    } catch (error) {
      if (error.code === "pending_confirmation") throw error;
      setProblem(error);
      return null;
    }
  };
  if (!tasks.available) return html`<p class="muted pad">${t("tasks.unavailable")}</p>`;
  if (!tasks.loaded) return html`<p class="muted pad" role="status">${t("page.loading")}</p>`;
  const open = tasks.list.filter((task) => !task.completed);
  const done = tasks.list.filter((task) => task.completed);
  const item = (task) => html`<${Task} key=${task.id} task=${task} act=${act} change=${changes.find((change) => change.task.id === task.id)} />`;
  return html`<div class="tasks">
    <${Add} act=${act} />
    ${problem ? html`<${ProblemCard} problem=${problem} onClose=${() => setProblem(null)} />` : null}
    ${tasks.problem ? html`<${ProblemCard} problem=${tasks.problem} onRetry=${loadTasks} />` : null}
    ${tasks.list.length === 0 && !tasks.problem
      ? html`<div class="nothing"><${Icon} name="tasks" /><p>${t("tasks.none")}</p><p class="muted">${t("tasks.none_why")}</p></div>`
      : null}
    ${open.length ? html`<ul class="task-list" aria-label=${t("tasks.open")}>${open.map(item)}</ul>` : null}
    ${done.length
      ? html`<details class="done-tasks" open=${open.length === 0}>
          <summary>${tasks.cursor ? t("tasks.completed_more", { number: done.length }) : t("tasks.completed_count", { count: done.length })}</summary>
          ${tasks.cursor ? html`<button type="button" class="text-button" onClick=${loadDoneTasks}>${t("tasks.earlier")}</button>` : null}
          <ul class="task-list" aria-label=${t("tasks.completed")}>${done.map(item)}</ul>
        </details>`
      : null}
    ${changes.length ? html`<${Changes} changes=${changes} />` : null}
  </div>`;
}

function Add({ act }) {
  const input = useRef(null);
  const submit = async (event) => {
    event.preventDefault();
    const description = input.current.value.trim();
    if (!description) return;
    input.current.value = "";
    const result = await act(t("tasks.was_added"), "add_task", { description });
    if (!result) input.current.value = description;
    input.current.focus();
  };
  return html`<form class="add-task" onSubmit=${submit}>
    <label class="only-heard" for="new-task">${t("tasks.new")}</label>
    <input id="new-task" ref=${input} dir="auto" maxlength="1000" placeholder=${t("tasks.new_hint")} autocomplete="off" />
    <button type="submit" class="icon-button" aria-label=${t("tasks.add")} title=${t("tasks.add")}><${Icon} name="plus" /></button>
  </form>`;
}

function Task({ task, act, change }) {
  const [mode, setMode] = useState(null); // null | "rename" | { preview, thread_id, confirm }
  const [isBusy, setBusy] = useState(false);
  const row = useRef(null);
  useEffect(() => {
    if (mode) row.current?.querySelector("[data-first]")?.focus();
  }, [mode]);
  const run = async (work) => {
    setBusy(true);
    try {
      await work();
    } finally {
      setBusy(false);
    }
  };
  const complete = () => run(async () => {
    // Shown at once, and again as it was if it did not work.
    setIn("tasks", { list: state.tasks.list.map((other) => (other.id === task.id ? { ...other, completed: true } : other)) });
    if (!(await act(t("tasks.was_completed"), "complete_task", { task_id: task.id }))) loadTasks();
  });
  const rename = (event) => {
    event.preventDefault();
    const description = new FormData(event.target).get("description").trim();
    setMode(null);
    if (description && description !== task.description) run(() => act(t("tasks.was_renamed"), "update_task", { task_id: task.id, description }));
  };
  const remove = (confirm) => run(async () => {
    try {
      await act(t("tasks.was_deleted"), "delete_task", { task_id: task.id }, confirm);
      setMode(null);
    } catch (problem) {
      setMode({ preview: problem.preview ?? problem.message, thread_id: problem.thread_id, confirm: problem.confirm });
    }
  });
  const keep = () => {
    if (mode?.confirm) withdraw(mode);
    setMode(null);
  };
  const key = (event) => {
    if (event.key === "Escape" && mode) {
      event.stopPropagation();
      keep();
    }
  };
  return html`<li ref=${row} class=${classes("task", task.completed && "is-done", change && "is-changed")} onKeyDown=${key} data-task=${task.id}>
    <div class="task-row">
      <input type="checkbox" checked=${task.completed} disabled=${task.completed || isBusy} aria-label=${t("tasks.complete", { task: task.description })}
        title=${task.completed ? t("tasks.completed_at", { when: moment(task.completed_at) }) : t("tasks.complete_title")} onChange=${complete} />
      ${mode === "rename"
        ? html`<form class="grow" onSubmit=${rename}>
            <input data-first name="description" aria-label=${t("tasks.description")} dir="auto" maxlength="1000" value=${task.description} onBlur=${(event) => event.target.form?.requestSubmit()} />
          </form>`
        : html`<span class="task-words" dir="auto" title=${t("tasks.added_at", { when: moment(task.created_at) })} onDblClick=${() => setMode("rename")}>${task.description}</span>
            <span class="task-tools">
              <${IconButton} icon="edit" name=${t("tasks.rename", { task: task.description })} disabled=${isBusy} onClick=${() => setMode("rename")} />
              <${IconButton} icon="trash" name=${t("tasks.delete", { task: task.description })} disabled=${isBusy} onClick=${() => remove()} />
            </span>`}
    </div>
    ${mode?.preview
      ? html`<div class="ask" role="group" aria-label=${t("tasks.confirm")}>
          <p dir="auto">${mode.preview}?</p>
          <div class="row">
            <button data-first type="button" class="button is-plain" onClick=${keep}>${t("common.keep")}</button>
            <button type="button" class="button is-danger" disabled=${isBusy} onClick=${() => remove(mode.confirm)}>${t("common.delete")}</button>
          </div>
        </div>`
      : null}
  </li>`;
}

/** What the turns of this conversation changed. */
function Changes({ changes }) {
  const show = (turn) => {
    document.getElementById(`turn-${turn.key}`)?.scrollIntoView({ block: "center" });
  };
  return html`<section class="changes" aria-label=${t("tasks.changes")}>
    <h2>${t("tasks.changes")}</h2>
    <ul>
      ${changes.slice(0, 12).map(({ what, task, turn }) => html`<li key=${`${turn.key}-${what}-${task.id}`}>
        <button type="button" onClick=${() => show(turn)} title=${t("tasks.show_turn")}>
          <span class=${classes("what", `is-${what}`)}>${t(`change.${what}`)}</span>
          <span class="change-words" dir="auto">${task.description}</span>
          <span class="muted">${when(turn.at)}</span>
        </button>
      </li>`)}
    </ul>
  </section>`;
}

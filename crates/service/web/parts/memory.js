// What is remembered of the person: facts in their vault or in the database, changed by hand.

import { forget, loadMemory, remember, reword, undoMemory } from "../memory.js";
import { setIn, state } from "../state.js";
import { t } from "../words.js";
import { classes, html, say, useEffect, useRef, useState } from "./base.js";
import { IconButton } from "./button.js";
import { Icon } from "./icons.js";
import { ProblemCard } from "./problem.js";

export function Memory() {
  const absent = state.me?.memory_absent;
  if (!absent) return html`<${Facts} />`;
  const known = ["no_vault", "not_yours", "out_of_reach"].includes(absent.code);
  return html`<div class="nothing"><${Icon} name="memory" /><p>${known ? t(`memory.${absent.code}`) : absent.detail}</p></div>`;
}

/**
 * Changes the memory by `work`, says what became of it, and keeps the last change for the way back. Gives whether it was done; `onDone` is
 * given the change, `onProblem` what stood in the way, or `null`.
 */
export async function changing(work, onProblem, onDone = () => {}) {
  onProblem(null);
  try {
    const change = await work();
    const words = change.message ?? t(`memory.${change.status}`);
    say(words);
    setIn("memory", { last: change.message ? null : { words, fact: change.fact, status: change.status } });
    onDone(change);
    return true;
  } catch (error) {
    onProblem(error);
    return false;
  }
}

function Facts() {
  const { memory } = state;
  const [problem, setProblem] = useState(null);
  useEffect(() => {
    loadMemory();
  }, []);
  const act = (work) => changing(work, setProblem);
  if (!memory.loaded) return html`<p class="muted pad" role="status">${t("page.loading")}</p>`;
  const important = memory.list.filter((fact) => fact.important);
  const others = memory.list.filter((fact) => !fact.important);
  const item = (fact) => html`<${Fact} key=${fact.id} fact=${fact} act=${act} />`;
  return html`<div class="tasks">
    <${Add} act=${act} />
    ${problem ? html`<${ProblemCard} problem=${problem} onClose=${() => setProblem(null)} />` : null}
    ${memory.problem ? html`<${ProblemCard} problem=${memory.problem} onRetry=${loadMemory} />` : null}
    <${LastChange} last=${memory.last} act=${act} />
    ${memory.list.length === 0 && !memory.problem
      ? html`<div class="nothing"><${Icon} name="memory" /><p>${t("memory.none")}</p><p class="muted">${t(state.me?.memory_in === "database" ? "memory.none_why_database" : "memory.none_why")}</p></div>`
      : null}
    ${important.length ? html`<h2 class="group">${t("memory.important")}</h2><ul class="task-list" aria-label=${t("memory.important_name")}>${important.map(item)}</ul>` : null}
    ${others.length ? html`<h2 class="group">${t("memory.recent")}</h2><ul class="task-list" aria-label=${t("memory.recent_name")}>${others.map(item)}</ul>` : null}
  </div>`;
}

/** The last change, and the way back. */
export function LastChange({ last, act }) {
  if (!last || last.status === "known") return null;
  return html`<p class="row done-line"><span dir="auto">${last.words}: ${last.fact.content}</span>
    <button type="button" class="text-button" onClick=${() => act(undoMemory)}><${Icon} name="retry" /><span>${t("memory.undo")}</span></button></p>`;
}

function Add({ act }) {
  const input = useRef(null);
  const submit = async (event) => {
    event.preventDefault();
    const content = input.current.value.trim();
    if (!content) return;
    input.current.value = "";
    if (!(await act(() => remember(content)))) input.current.value = content;
    input.current.focus();
  };
  return html`<form class="add-task" onSubmit=${submit}>
    <label class="only-heard" for="new-fact">${t("memory.new")}</label>
    <input id="new-fact" ref=${input} dir="auto" maxlength="1000" placeholder=${t("memory.new_hint")} autocomplete="off" />
    <button type="submit" class="icon-button" aria-label=${t("memory.add")} title=${t("memory.add")}><${Icon} name="plus" /></button>
  </form>`;
}

/** A fact with its buttons. `act` performs an action and returns true if it succeeded; `children` are shown below the text. */
export function Fact({ fact, act, children }) {
  const [isEdited, setEdited] = useState(false);
  const [isBusy, setBusy] = useState(false);
  const row = useRef(null);
  useEffect(() => {
    if (isEdited) row.current?.querySelector("[data-first]")?.focus();
  }, [isEdited]);
  const run = async (work) => {
    setBusy(true);
    await act(work);
    setBusy(false);
  };
  const change = (event) => {
    event.preventDefault();
    const content = new FormData(event.target).get("content").trim();
    setEdited(false);
    if (content && content !== fact.content) run(() => reword(fact.id, { content }));
  };
  const key = (event) => {
    if (event.key === "Escape" && isEdited) {
      event.stopPropagation();
      setEdited(false);
    }
  };
  return html`<li ref=${row} class="task" onKeyDown=${key}>
    <div class="task-row">
      <button type="button" class=${classes("icon-button", "star", fact.important && "is-on")} aria-pressed=${fact.important} disabled=${isBusy}
        aria-label=${t("memory.star", { fact: fact.content })} title=${t(fact.important ? "memory.is_important" : "memory.make_important")}
        onClick=${() => run(() => reword(fact.id, { important: !fact.important }))}><${Icon} name="star" /></button>
      ${isEdited
        ? html`<form class="grow" onSubmit=${change}>
            <input data-first name="content" aria-label=${t("memory.fact")} dir="auto" maxlength="1000" value=${fact.content} onBlur=${(event) => event.target.form?.requestSubmit()} />
          </form>`
        : html`<span class="task-words" dir="auto" title=${fact.created ? t("memory.recorded", { when: fact.created }) : undefined} onDblClick=${() => setEdited(true)}>${fact.content}</span>
            <span class="task-tools">
              <${IconButton} icon="edit" name=${t("memory.change", { fact: fact.content })} disabled=${isBusy} onClick=${() => setEdited(true)} />
              <${IconButton} icon="trash" name=${t("memory.forget", { fact: fact.content })} disabled=${isBusy} onClick=${() => run(() => forget(fact.id))} />
            </span>`}
    </div>
    ${children}
  </li>`;
}

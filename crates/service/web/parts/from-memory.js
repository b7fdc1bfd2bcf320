// Facts of automatic recall that were attached to a message: where each is from, and how to correct it.

import { openThread } from "../actions/opening.js";
import { loadMemory } from "../memory.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { html, useInSight, useState } from "./base.js";
import { Icon } from "./icons.js";
import { changing, Fact, LastChange } from "./memory.js";
import { ProblemCard } from "./problem.js";

/** `known`: what is remembered now. */
export function FromMemory({ turn, known }) {
  const [isOpen, setOpen] = useState(false);
  const element = useInSight(isOpen);
  const toggle = () => {
    if (!isOpen) loadMemory();
    setOpen(!isOpen);
  };
  return html`<div class="from-memory" ref=${element}>
    <button type="button" class="work-line" aria-expanded=${isOpen} onClick=${toggle}>
      <${Icon} name="memory" />${t("recalled.name", { count: turn.memory.length })}<${Icon} name="chevron" /></button>
    ${isOpen ? html`<${Told} told=${turn.memory} known=${known} />` : null}
  </div>`;
}

function Told({ told, known }) {
  const [problem, setProblem] = useState(null);
  // The id of a fact changes with its text.
  const [moved, setMoved] = useState({});
  const act = (id) => (work) =>
    changing(work, setProblem, ({ fact, status }) => {
      if (fact && status !== "forgotten") setMoved({ ...moved, [id]: fact.id });
    });
  if (!known.loaded) return html`<p class="muted" role="status">${t("page.loading")}</p>`;
  return html`<p class="muted">${t("recalled.why")}</p>
    ${known.problem ? html`<${ProblemCard} problem=${known.problem} onRetry=${loadMemory} />` : null}
    ${problem ? html`<${ProblemCard} problem=${problem} onClose=${() => setProblem(null)} />` : null}
    <${LastChange} last=${known.last} act=${act(null)} />
    <ul class="task-list">${told.map(({ id, text }, at) => {
      const fact = known.list.find((fact) => fact.id === (moved[id] ?? id));
      return fact
        ? html`<${Fact} key=${id} fact=${fact} act=${act(id)}><${Origin} fact=${fact} /><//>`
        : html`<li key=${id ?? at} class="task"><span class="task-words muted" dir="auto">${text.replace(/^- /, "")}</span>
            ${id ? html`<span class="muted">${t("recalled.gone")}</span>` : null}</li>`;
    })}</ul>`;
}

/** The day it was recorded, and the conversation it is from. */
function Origin({ fact }) {
  if (!fact.created && !fact.thread_id) return null;
  const open = (event) => {
    event.preventDefault();
    openThread(fact.thread_id);
  };
  return html`<p class="fact-origin muted">${fact.created ? t("memory.recorded", { when: fact.created }) : null}
    ${fact.thread_id && fact.thread_id !== state.threadId ? html` <a href=${`#/t/${fact.thread_id}`} onClick=${open}>${t("recalled.conversation")}</a>` : null}</p>`;
}

// What happened: the list of turns with totals, and one turn step by step.

import { closeTrace, filterTrace, loadDecisions, openTrace } from "../actions.js";
import { cost, count, duration, moment, tokens, when, words } from "../format.js";
import { state } from "../state.js";
import { classes, html, useEffect } from "./base.js";
import { ProblemCard } from "./problem.js";
import { TraceDetail } from "./trace-detail.js";

// As `core` names them.
export const OUTCOMES = [
  "SUCCESS:RESPONSE_GIVEN", "SUCCESS:TASK_COMPLETED", "AMBIGUITY:UNCLEAR_INTENT", "PENDING:CONFIRMATION", "PENDING:RESULT",
  "REFUSAL:OUT_OF_SCOPE", "REFUSAL:RATE_LIMITED", "REFUSAL:CONFIRMATION_DENIED", "REFUSAL:CONFIRMATION_EXPIRED",
  "REFUSAL:CONTENT_FILTER", "ERROR:LLM_FAILURE", "ERROR:TOOL_FAILURE", "LIMIT:ITERATIONS", "LIMIT:MAX_TOKENS",
  "LIMIT:IDENTICAL_CALLS", "LIMIT:DEADLINE", "LIMIT:BUDGET", "LIMIT:CONTEXT", "CANCELLED:BY_USER", "INTERRUPTED:IN_DOUBT", "INTERRUPTED:NO_RESULT", "ERROR:POISONED",
];

/** `good`, `wait`, `bad` or `plain`: how an outcome is coloured. */
export function mood(outcome) {
  const group = (outcome ?? "").split(":")[0];
  return { SUCCESS: "good", PENDING: "wait", INTERRUPTED: "wait", ERROR: "bad", LIMIT: "bad" }[group] ?? "plain";
}

export function Trace() {
  const { trace } = state;
  if (trace.id) {
    return trace.problem
      ? html`<div class="pad"><${ProblemCard} problem=${trace.problem} onRetry=${() => openTrace(trace.id)} onClose=${closeTrace} /></div>`
      : html`<${TraceDetail} key=${trace.id} id=${trace.id} detail=${trace.detail} />`;
  }
  return html`<${List} />`;
}

function List() {
  const { trace, threadId, me } = state;
  const { filter, list } = trace;
  useEffect(() => {
    loadDecisions();
  }, [threadId]);
  const choose = (name) => (event) => filterTrace({ [name]: event.target.value });
  return html`<div class="trace-list">
    <div class="filters">
      <select aria-label="Which conversations" value=${filter.scope} onChange=${choose("scope")}>
          <option value="thread">This conversation</option><option value="all">All conversations</option>
      </select>
      <select aria-label="Since" value=${filter.days} onChange=${choose("days")}>
          <option value="">Any time</option><option value="1">Last 24 hours</option><option value="7">Last 7 days</option><option value="30">Last 30 days</option>
      </select>
      <select aria-label="Outcome" value=${filter.outcome} onChange=${choose("outcome")}>
          <option value="">Any outcome</option>${OUTCOMES.map((outcome) => html`<option value=${outcome}>${words(outcome)}</option>`)}
      </select>
      <select aria-label="Tool" value=${filter.tool} onChange=${choose("tool")}>
          <option value="">Any tool</option>${me.tools.map(({ name }) => html`<option value=${name}>${words(name)}</option>`)}
      </select>
    </div>
    ${trace.listProblem ? html`<${ProblemCard} problem=${trace.listProblem} onRetry=${() => loadDecisions()} />` : null}
    ${list.length ? html`<${Totals} list=${list} isAll=${!trace.cursor} />` : null}
    ${trace.loaded && list.length === 0 && !trace.listProblem
      ? html`<div class="nothing"><p>Nothing here yet.</p><p class="muted">${filter.scope === "thread" && !threadId ? "This conversation has not begun." : "Every turn leaves its trace here."}</p></div>`
      : null}
    <ul class="decisions">
      ${list.map((row) => html`<li key=${row.id}>
        <button type="button" onClick=${() => openTrace(row.id)}>
          <span class="decision-head">
            <span class="decision-words" dir="auto">${row.message || "(not kept)"}</span>
            <time datetime=${row.started_at} title=${moment(row.started_at)}>${when(row.started_at)}</time>
          </span>
          <span class="decision-facts">
            <span class=${classes("outcome", `is-${mood(row.outcome)}`)}>${row.outcome ? words(row.outcome.split(":").at(-1)) : "running"}</span>
            <span>${duration(row.timing_ms.total)}</span>
            ${tokens(row.usage) ? html`<span>${tokens(row.usage)}</span>` : null}
            <span>${cost(row.usage.cost_usd)}</span>
          </span>
        </button>
      </li>`)}
    </ul>
    ${trace.cursor ? html`<button type="button" class="text-button pad" onClick=${() => loadDecisions({ more: true })}>Show more</button>` : null}
  </div>`;
}

function Totals({ list, isAll }) {
  const sum = (read) => list.reduce((total, row) => total + (read(row) ?? 0), 0);
  // One unknown price makes the sum unknown: it is at least that.
  const known = list.every((row) => row.usage.cost_usd != null);
  const money = sum((row) => row.usage.cost_usd);
  const model = list.filter((row) => row.timing_ms.llm != null);
  const mean = model.length ? model.reduce((total, row) => total + row.timing_ms.llm, 0) / model.length : null;
  const facts = [
    [`${list.length}${isAll ? "" : "+"}`, list.length === 1 ? "turn" : "turns"],
    [count(sum((row) => row.usage.input_tokens)), "tokens in"],
    [count(sum((row) => row.usage.output_tokens)), "out"],
    [known ? cost(money) : money > 0 ? `${cost(money)} + ?` : "$?", "cost"],
    [duration(mean), "model, mean"],
  ];
  return html`<dl class="totals" aria-label="Totals of what is listed">${facts.map(([value, name]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

// What happened: the list of turns with totals, and one turn step by step.

import { closeTrace, filterTrace, loadDecisions, openTrace } from "../actions/panel.js";
import { toolTitle } from "../calls.js";
import { cost, count, duration, moment, tokens, when } from "../format.js";
import { mood, outcomeName, OUTCOMES } from "../outcomes.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { classes, html, useEffect } from "./base.js";
import { ProblemCard } from "./problem.js";
import { TraceDetail } from "./trace-detail.js";

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
      <select aria-label=${t("trace.which")} value=${filter.scope} onChange=${choose("scope")}>
          <option value="thread">${t("trace.this")}</option><option value="all">${t("trace.all")}</option>
      </select>
      <select aria-label=${t("trace.since")} value=${filter.days} onChange=${choose("days")}>
          <option value="">${t("trace.any_time")}</option><option value="1">${t("trace.last_hours", { hours: 24 })}</option><option value="7">${t("trace.last_days", { days: 7 })}</option><option value="30">${t("trace.last_days", { days: 30 })}</option>
      </select>
      <select aria-label=${t("trace.outcome")} value=${filter.outcome} onChange=${choose("outcome")}>
          <option value="">${t("trace.any_outcome")}</option>${OUTCOMES.map((outcome) => html`<option value=${outcome}>${t(`outcome.${outcome}`)}</option>`)}
      </select>
      <select aria-label=${t("trace.tool")} value=${filter.tool} onChange=${choose("tool")}>
          <option value="">${t("trace.any_tool")}</option>${me.tools.map(({ name }) => html`<option value=${name}>${toolTitle(name, me.tools)}</option>`)}
      </select>
    </div>
    ${trace.listProblem ? html`<${ProblemCard} problem=${trace.listProblem} onRetry=${() => loadDecisions()} />` : null}
    ${list.length ? html`<${Totals} list=${list} isAll=${!trace.cursor} />` : null}
    ${trace.loaded && list.length === 0 && !trace.listProblem
      ? html`<div class="nothing"><p>${t("trace.nothing")}</p><p class="muted">${t(filter.scope === "thread" && !threadId ? "trace.not_begun" : "trace.every_turn")}</p></div>`
      : null}
    <ul class="decisions">
      ${list.map((row) => html`<li key=${row.id}>
        <button type="button" onClick=${() => openTrace(row.id)}>
          <span class="decision-head">
            <span class="decision-words" dir="auto">${row.message || t("trace.not_kept")}</span>
            <time datetime=${row.started_at} title=${moment(row.started_at)}>${when(row.started_at)}</time>
          </span>
          <span class="decision-facts">
            <span class=${classes("outcome", `is-${mood(row.outcome)}`)}>${outcomeName(row.outcome)}</span>
            <span>${duration(row.timing_ms.llm + row.timing_ms.tools)}</span>
            ${tokens(row.usage) ? html`<span>${tokens(row.usage)}</span>` : null}
            <span>${cost(row.usage.cost_usd)}</span>
          </span>
        </button>
      </li>`)}
    </ul>
    ${trace.cursor ? html`<button type="button" class="text-button pad" onClick=${() => loadDecisions({ more: true })}>${t("common.more")}</button>` : null}
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
    [`${list.length}${isAll ? "" : "+"}`, t("trace.turns", { count: list.length })],
    [count(sum((row) => row.usage.input_tokens)), t("trace.tokens_in")],
    [count(sum((row) => row.usage.output_tokens)), t("trace.tokens_out")],
    [known ? cost(money) : money > 0 ? t("cost.at_least", { cost: cost(money) }) : cost(null), t("trace.cost")],
    [duration(mean), t("trace.mean")],
  ];
  return html`<dl class="totals" aria-label=${t("trace.totals")}>${facts.map(([value, name]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

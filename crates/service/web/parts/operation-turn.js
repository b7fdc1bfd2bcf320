// A user's turn, for operators: the step that failed, and where to find its cause.

import { cost, count, duration, moment } from "../format.js";
import { leaveTurn, lookAtTurn } from "../operation.js";
import { hasWords, t } from "../words.js";
import { classes, html } from "./base.js";
import { CopyButton, IconButton } from "./button.js";
import { ProblemCard } from "./problem.js";
import { modelName, mood, outcomeName } from "../outcomes.js";

export function OperationTurn({ turn, problem }) {
  const { id, user, detail } = turn;
  const head = html`<header class="detail-head">
    <${IconButton} icon="back" name=${t("operation.back")} onClick=${leaveTurn} />
    <h2 dir="auto">${t("operation.turn_of", { user })}</h2>
    ${detail ? html`<span class=${classes("outcome", `is-${mood(detail.outcome)}`)} title=${detail.outcome}>${outcomeName(detail.outcome)}</span>` : null}
  </header>`;
  if (problem) return html`<div class="detail">${head}<${ProblemCard} problem=${problem} onRetry=${() => lookAtTurn(id, user)} onClose=${leaveTurn} /></div>`;
  if (!detail) return html`<div class="detail">${head}<p class="muted pad" role="status">${t("page.loading")}</p></div>`;
  const { usage, timing_ms: timing } = detail;
  const facts = [
    [t("trace.fact.error"), detail.error_code],
    // With the words of the turn, all its errors are shown there.
    [t("operation.provider"), detail.words ? null : detail.steps.find((step) => step.error_message)?.error_message],
    [t("trace.fact.request"), detail.request_id],
    [t("trace.fact.started"), moment(detail.started_at)],
    [t("trace.fact.model"), modelName(usage.model)],
    [t("trace.fact.time"), t("trace.time", { total: duration(timing.total), model: duration(timing.llm), tools: duration(timing.tools) })],
    [t("trace.fact.tokens"), `${t("trace.in", { count: count(usage.input_tokens) })}, ${t("trace.out", { count: count(usage.output_tokens) })}`],
    [t("trace.fact.cost"), cost(usage.cost_usd)],
    [t("trace.fact.calls"), t("trace.calls", { calls: detail.model_calls, rounds: detail.iterations })],
    [t("operation.message"), t("operation.characters", { count: detail.message_chars })],
  ];
  return html`<div class="detail">
    ${head}
    <dl class="facts-list">${facts.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd dir="auto">${value}</dd></div>`)}</dl>
    <section aria-label=${t("trace.steps")}>
      <h3>${t("trace.steps")}</h3>
      <ol class="steps">${detail.steps.map((step) => html`<li class=${classes(step.failed && "has-error")}>
        <span class="step-name"><span class="step-kind">${hasWords(`trace.kind.${step.kind}`) ? t(`trace.kind.${step.kind}`) : step.kind}</span> ${["model", "tool"].includes(step.kind) ? step.name : ""}${step.attempt > 1 ? ` ×${step.attempt}` : ""}${step.failed ? html` <strong>${step.error_code ?? t("operation.step_failed")}</strong>` : null}</span>
        <span class="step-ms">${step.ms == null ? "…" : duration(step.ms)}</span>
      </li>`)}</ol>
    </section>
    <p class="muted">${t(detail.request_id ? "operation.cause" : "operation.cause_command")}</p>
    ${detail.request_id ? html`<${Command} text=${`adjutant log show --request ${detail.request_id}`} />` : null}
    <${Command} text=${detail.command} />
    ${detail.words ? html`<${Words} words=${detail.words} />` : html`<p class="muted">${t("operation.no_words")}</p>`}
  </div>`;
}

function Command({ text }) {
  return html`<div class="command"><code>${text}</code><${CopyButton} name=${t("trace.copy_command")} text=${() => text} /></div>`;
}

/** Shows message, answer and errors of a turn, where the settings let them be seen. */
function Words({ words }) {
  return html`<section>
    <h3>${t("operation.said")}</h3>
    <p class="detail-words" dir="auto">${words.message}</p>
    ${words.content ? html`<p class="detail-words" dir="auto">${words.content}</p>` : null}
    ${words.steps.filter((step) => step.error?.message).map((step) => html`<p class="wrong" dir="auto">${step.error.message}</p>`)}
  </section>`;
}

// The line below an answer: its progress while it is streamed; afterwards its model, duration and steps, on demand.

import { openTrace } from "../actions/panel.js";
import { toolTitle } from "../calls.js";
import { worked } from "../conversation.js";
import { cost, duration, seconds, share, tokens } from "../format.js";
import { outcomeName } from "../outcomes.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { classes, html, useInSight, useNow, useState } from "./base.js";
import { Icon } from "./icons.js";
import { Toolbar } from "./toolbar.js";

/** Text of a step. A waiting step counts down by itself. */
function stepWords(step, now) {
  switch (step.kind) {
    case "model":
      return t(step.number > 1 ? "step.model_again" : "step.model");
    case "reading":
      return t("step.reading", { share: share(step.share) });
    case "tool": {
      const title = toolTitle(step.name, state.me.tools);
      return step.count > 1 ? t("step.tools", { title, count: step.count }) : title;
    }
    default: {
      const left = Math.ceil((step.until - now) / 1000);
      return left > 0 ? t("step.retrying_in", { seconds: left }) : t("step.retrying", { attempt: step.attempt + 1 });
    }
  }
}

const thoughtOf = (turn) => turn.parts.filter((part) => part.kind === "thinking").map((part) => part.text).join("\n\n");

/** Shows the progress: a clock, the steps until text arrives, and the model's thinking. */
export function Working({ turn, attempt, unsent, stopping }) {
  const now = useNow(1000);
  const [isOpen, setOpen] = useState(false);
  const last = turn.parts.at(-1);
  const isTalking = last?.kind === "text" && !last.done;
  const thought = thoughtOf(turn);
  const time = seconds(worked(turn, now));
  let label = t("turn.thinking");
  if (isTalking) label = t("turn.writing");
  if (last?.kind === "tool" && last.status === "running") label = t("turn.doing");
  if (stopping) label = t("turn.stopping");
  if (attempt > 0) label = unsent ? t("turn.unsent") : t("turn.lost", { attempt });
  // A button says nothing by itself, and its name should not change with each second.
  const line = (role) => html`<span class="pulse" aria-hidden="true" /><span role=${role}>${label}</span>${attempt > 0 ? null : html`<span class="digits" aria-hidden="true">${time}</span>`}`;
  return html`<div class="work">
    ${thought
      ? html`<span class="only-heard" role="status">${label}</span>
          <button type="button" class="work-line" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${line()}<${Icon} name="chevron" /></button>`
      : html`<p class="work-line">${line("status")}</p>`}
    ${isOpen && thought ? html`<p class="thought" dir="auto">${thought}</p>` : null}
    ${isTalking || attempt > 0 || stopping
      ? null
      : html`<ol class="steps" aria-label=${t("step.name")}>
          ${turn.steps.map((step, at) => html`<li key=${at} class=${classes("step-line", at === turn.steps.length - 1 && "is-now", step.kind === "retrying" && "is-late")}>
            <${Icon} name=${step.kind === "retrying" ? "retry" : at === turn.steps.length - 1 ? "dot" : "check"} />${stepWords(step, now)}</li>`)}
        </ol>`}
  </div>`;
}

/** Returns the label of a turn that ended: its time, if it answered and took a second or more. */
function label(turn) {
  const ms = worked(turn, Date.now());
  const isAnswered = turn.status === "done" || turn.status === "waiting";
  return isAnswered && ms >= 1000 ? t("turn.thought", { time: seconds(ms) }) : t("turn.details");
}

/** The line of a turn that ended; behind it, what the model thought and what it took. */
export function Details({ turn, children }) {
  const [isOpen, setOpen] = useState(false);
  const { decision } = turn;
  const thought = thoughtOf(turn);
  const isThere = Boolean(decision?.decision_id || thought);
  const element = useInSight(isOpen);
  return html`<${Toolbar} name=${t("turn.answer_actions")} class="answer-tools">
      ${isThere
        ? html`<button type="button" class="badge" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>${label(turn)}<${Icon} name="chevron" /></button>`
        : null}
      ${children}
    <//>
    ${isOpen && isThere
      ? html`<div class="details" ref=${element}>
          ${thought ? html`<p class="thought" dir="auto">${thought}</p>` : null}
          ${decision?.decision_id ? html`<${Facts} decision=${decision} />` : null}
        </div>`
      : null}`;
}

function Facts({ decision }) {
  const { usage = {}, timing_ms: { llm, tools } = {} } = decision;
  const facts = [
    [t("trace.outcome"), outcomeName(decision.outcome)],
    [t("trace.kind.model"), llm == null ? null : duration(llm)],
    [t("detail.tools"), tools ? duration(tools) : null],
    [t("trace.fact.tokens"), tokens(usage)],
    [t("trace.fact.cost"), cost(usage.cost_usd)],
  ];
  return html`<dl class="detail-facts">${facts.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <button type="button" class="button" onClick=${() => openTrace(decision.decision_id)}><${Icon} name="trace" />${t("detail.trace")}</button>`;
}

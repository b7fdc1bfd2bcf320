// One turn: where its time went, and what went out and came back at each step.

import { closeTrace } from "../actions/panel.js";
import { cost, count, duration, moment, tokens, words } from "../format.js";
import { modelName, mood, outcomeName } from "../outcomes.js";
import { timeline } from "../timeline.js";
import { hasWords, t } from "../words.js";
import { classes, html, useState } from "./base.js";
import { CopyButton, IconButton } from "./button.js";
import { Icon } from "./icons.js";
import { Json } from "./json.js";

export function TraceDetail({ id, detail }) {
  const head = html`<header class="detail-head">
    <${IconButton} icon="back" name=${t("trace.all_turns")} onClick=${closeTrace} />
    <h2>${t("trace.turn")}</h2>
    ${detail ? html`<span class=${classes("outcome", `is-${mood(detail.outcome)}`)} title=${detail.outcome}>${outcomeName(detail.outcome)}</span>` : null}
  </header>`;
  if (!detail) return html`<div class="detail">${head}<p class="muted pad" role="status"><span class="spinner" aria-hidden="true" /> ${t("page.loading")}</p></div>`;
  const { usage, timing_ms: timing } = detail;
  const command = `adjutant log show ${id}`;
  const facts = [
    [t("trace.fact.decision"), words(detail.decision)],
    [t("trace.fact.wanted"), words(detail.intent)],
    [t("trace.fact.model"), modelName(usage.model)],
    [t("trace.fact.time"), t("trace.time", { total: duration(timing.llm + timing.tools), model: duration(timing.llm), tools: duration(timing.tools) })],
    [t("trace.fact.tokens"), `${t(usage.cached_tokens ? "trace.in_cached" : "trace.in", { count: count(usage.input_tokens), cached: count(usage.cached_tokens) })}, ${t(usage.thinking_tokens ? "trace.out_thinking" : "trace.out", { count: count(usage.output_tokens), thinking: count(usage.thinking_tokens) })}`],
    [t("trace.fact.cost"), cost(usage.cost_usd)],
    [t("trace.fact.calls"), t("trace.calls", { calls: detail.model_calls, rounds: detail.iterations })],
    [t("trace.fact.error"), detail.error_code],
    [t("trace.fact.started"), moment(detail.started_at)],
    [t("trace.fact.request"), detail.request_id],
  ];
  return html`<div class="detail">
    ${head}
    <p class="detail-words" dir="auto">${detail.message}</p>
    <dl class="facts-list">${facts.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <${Waterfall} steps=${detail.steps} elapsed=${timing.total} />
    <div class="command"><code>${command}</code><${CopyButton} name=${t("trace.copy_command")} text=${() => command} /></div>
    <${Fold} name=${t("trace.raw")}><${Json} value=${detail} name=${t("trace.whole")} /><//>
  </div>`;
}

function Waterfall({ steps, elapsed }) {
  const places = timeline(steps, elapsed);
  const [opened, setOpened] = useState(null);
  return html`<section aria-label=${t("trace.steps")}>
    <h3>${t("trace.steps")}</h3>
    <ol class="waterfall">
      ${steps.map((step, at) => {
        const isOpen = opened === at;
        const { left, width } = places[at];
        const tries = step.attempt > 1 ? ` ×${step.attempt}` : "";
        return html`<li key=${at} class=${classes(`is-${step.kind}`, step.error && "has-error")}>
          <button type="button" aria-expanded=${isOpen} onClick=${() => setOpened(isOpen ? null : at)}>
            <span class="step-name"><span class="step-kind">${hasWords(`trace.kind.${step.kind}`) ? t(`trace.kind.${step.kind}`) : step.kind}</span>${["queue", "load", "engine"].includes(step.kind) ? null : html` ${step.kind === "tool" ? words(step.name) : step.name}`}${tries}</span>
            <span class="step-ms">${step.ms == null ? "…" : duration(step.ms)}</span>
            <span class="lane" aria-hidden="true"><span class="bar" style=${{ left: `${left}%`, width: `${width}%` }} /></span>
          </button>
          ${isOpen ? html`<${Step} step=${step} />` : null}
        </li>`;
      })}
    </ol>
  </section>`;
}

function Step({ step }) {
  const { usage, finish_reason: finish, cost_usd: money, error, request, response } = step;
  const facts = [
    step.attempt && t("trace.attempt", { attempt: step.attempt }),
    tokens(usage ?? undefined),
    step.kind === "model" && cost(money),
    finish && t("trace.finish", { why: words(typeof finish === "string" ? finish : JSON.stringify(finish)) }),
    t("trace.began", { after: duration(step.offset_ms) }),
  ];
  return html`<div class="step">
    <p class="muted">${facts.filter(Boolean).join(" · ")}</p>
    ${error ? html`<p class="wrong"><${Icon} name="warn" /> ${error.code ? `${error.code}: ` : ""}${error.message ?? JSON.stringify(error)}</p>` : null}
    ${request?.messages ? html`<${Sent} request=${request} />` : request ? html`<h4>${t(step.kind === "wait" ? "trace.asked" : "trace.sent")}</h4><${Json} value=${request.args ?? request} name=${t("trace.sent")} />` : null}
    ${response ? html`<h4>${t(step.kind === "wait" ? "trace.answered" : "trace.received")}</h4><${Received} kind=${step.kind} response=${response} />` : null}
    <${Fold} name=${t("trace.raw_step")}><${Json} value=${step} name=${t("trace.step")} /><//>
  </div>`;
}

function Sent({ request }) {
  return html`<h4>${t("trace.sent")}</h4>
    ${request.repeated ? html`<p class="muted">${t("trace.repeated", { count: request.repeated })}</p>` : null}
    <ul class="messages">${request.messages.map((message) => html`<${Message} message=${message} />`)}</ul>`;
}

function Received({ kind, response }) {
  if (kind !== "model" || typeof response.content !== "string") return html`<${Json} value=${response} name=${t("trace.received")} />`;
  return html`<ul class="messages">
    ${response.thinking ? html`<${Message} message=${{ role: "thinking", content: response.thinking }} />` : null}
    <${Message} message=${{ role: "assistant", content: response.content, tool_calls: response.tool_calls }} />
  </ul>`;
}

function Message({ message }) {
  const calls = message.tool_calls ?? [];
  return html`<li class=${`said-by-${message.role}`}>
    <span class="role">${message.role}</span>
    ${message.content ? html`<p class="said" dir="auto">${message.content}</p>` : null}
    ${calls.map((call) => html`<${Json} value=${call.args} title=${call.tool} name=${t("tool.arguments_of", { tool: call.tool })} />`)}
  </li>`;
}

function Fold({ name, children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<section class="fold">
    <button type="button" class="text-button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}><${Icon} name="chevron" />${name}</button>
    ${isOpen ? children : null}
  </section>`;
}

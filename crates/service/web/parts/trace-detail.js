// One turn: where its time went, and what went out and came back at each step.

import { closeTrace } from "../actions.js";
import { cost, count, duration, moment, tokens, words } from "../format.js";
import { timeline } from "../timeline.js";
import { classes, html, useState } from "./base.js";
import { CopyButton, IconButton } from "./button.js";
import { Icon } from "./icons.js";
import { Json } from "./tool.js";
import { mood } from "./trace.js";

const KINDS = { queue: "queue", load: "loading", model: "model", tool: "tool", wait: "waiting for you", engine: "engine" };

export function TraceDetail({ id, detail }) {
  const head = html`<header class="detail-head">
    <${IconButton} icon="back" name="All turns" onClick=${closeTrace} />
    <h2>Turn</h2>
    ${detail ? html`<span class=${classes("outcome", `is-${mood(detail.outcome)}`)}>${detail.outcome ?? "running"}</span>` : null}
  </header>`;
  if (!detail) return html`<div class="detail">${head}<p class="muted pad" role="status"><span class="spinner" aria-hidden="true" /> Loading…</p></div>`;
  const { usage, timing_ms: timing } = detail;
  const command = `adjutant log show ${id}`;
  const facts = [
    ["Decision", words(detail.decision)],
    ["Wanted", words(detail.intent)],
    ["Model", usage.model],
    ["Time", `${duration(timing.total)} (model ${duration(timing.llm)}, tools ${duration(timing.tools)})`],
    ["Tokens", `${count(usage.input_tokens)} in${usage.cached_tokens ? ` (${count(usage.cached_tokens)} cached)` : ""}, ${count(usage.output_tokens)} out${usage.thinking_tokens ? ` (${count(usage.thinking_tokens)} thinking)` : ""}`],
    ["Cost", cost(usage.cost_usd)],
    ["Model calls", `${detail.model_calls}, tool rounds ${detail.iterations}`],
    ["Error", detail.error_code],
    ["Started", moment(detail.started_at)],
    ["Request", detail.request_id],
  ];
  return html`<div class="detail">
    ${head}
    <p class="detail-words" dir="auto">${detail.message}</p>
    <dl class="facts-list">${facts.filter(([, value]) => value).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>
    <${Waterfall} steps=${detail.steps} elapsed=${timing.total} />
    <div class="command"><code>${command}</code><${CopyButton} name="Copy command" text=${() => command} /></div>
    <${Fold} name="Raw JSON"><${Json} value=${detail} name="The whole decision" /><//>
  </div>`;
}

function Waterfall({ steps, elapsed }) {
  const places = timeline(steps, elapsed);
  const [opened, setOpened] = useState(null);
  return html`<section aria-label="Steps">
    <h3>Steps</h3>
    <ol class="waterfall">
      ${steps.map((step, at) => {
        const isOpen = opened === at;
        const { left, width } = places[at];
        const tries = step.attempt > 1 ? ` ×${step.attempt}` : "";
        return html`<li key=${at} class=${classes(`is-${step.kind}`, step.error && "has-error")}>
          <button type="button" aria-expanded=${isOpen} onClick=${() => setOpened(isOpen ? null : at)}>
            <span class="step-name"><span class="step-kind">${KINDS[step.kind] ?? step.kind}</span>${["queue", "load", "engine"].includes(step.kind) ? null : html` ${step.kind === "tool" ? words(step.name) : step.name}`}${tries}</span>
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
    step.attempt && `attempt ${step.attempt}`,
    tokens(usage ?? undefined),
    step.kind === "model" && cost(money),
    finish && `finish: ${words(typeof finish === "string" ? finish : JSON.stringify(finish))}`,
    `began at +${duration(step.offset_ms)}`,
  ];
  return html`<div class="step">
    <p class="muted">${facts.filter(Boolean).join(" · ")}</p>
    ${error ? html`<p class="wrong"><${Icon} name="warn" /> ${error.code ? `${error.code}: ` : ""}${error.message ?? JSON.stringify(error)}</p>` : null}
    ${request?.messages ? html`<${Sent} request=${request} />` : request ? html`<h4>${step.kind === "wait" ? "Asked" : "Sent"}</h4><${Json} value=${request.args ?? request} name="Sent" />` : null}
    ${response ? html`<h4>${step.kind === "wait" ? "Answered" : "Received"}</h4><${Received} kind=${step.kind} response=${response} />` : null}
    <${Fold} name="Raw"><${Json} value=${step} name="The step" /><//>
  </div>`;
}

function Sent({ request }) {
  return html`<h4>Sent</h4>
    ${request.repeated ? html`<p class="muted">${request.repeated === 1 ? "The first message is" : `The first ${request.repeated} messages are`} as in the call before; then:</p>` : null}
    <ul class="messages">${request.messages.map((message) => html`<${Message} message=${message} />`)}</ul>`;
}

function Received({ kind, response }) {
  if (kind !== "model" || typeof response.content !== "string") return html`<${Json} value=${response} name="Received" />`;
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
    ${calls.map((call) => html`<${Json} value=${call.args} title=${call.tool} name=${`${call.tool}: arguments`} />`)}
  </li>`;
}

function Fold({ name, children }) {
  const [isOpen, setOpen] = useState(false);
  return html`<section class="fold">
    <button type="button" class="text-button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}><${Icon} name="chevron" />${name}</button>
    ${isOpen ? children : null}
  </section>`;
}

// One turn: what the person said, what was done, what was answered, and what it cost.

import { editTurn, openAlternative, openTrace, regenerate, send } from "../actions.js";
import { cost, duration, moment, tokens, when, words } from "../format.js";
import { t } from "../words.js";
import { classes, html, memo, useState } from "./base.js";
import { CopyButton, IconButton } from "./button.js";
import { Icon } from "./icons.js";
import { Markdown } from "./markdown.js";
import { ProblemCard } from "./problem.js";
import { ToolCard } from "./tool.js";

export const Turn = memo(function Turn({ turn, isLast, isBusy, alternatives, pending, choices, attempt, stopping }) {
  const isRunning = turn.status === "running";
  const answer = turn.parts.filter((part) => part.kind === "text").map((part) => part.text).join("\n\n");
  return html`<li class="turn" id=${`turn-${turn.key}`}>
    ${turn.text === null ? null : html`<div class="asked">
      <h2 class="only-heard">${t("turn.you")}</h2>
      <div class="bubble" dir="auto">${turn.text}</div>
      <div class="asked-tools">
        <time datetime=${turn.at} title=${moment(turn.at)}>${when(turn.at)}</time>
        <${CopyButton} name=${t("turn.copy_message")} text=${() => turn.text} />
        ${turn.id === null ? null : html`<${IconButton} icon="edit" name=${t("turn.edit_message")} class="icon-button when-idle" onClick=${() => editTurn(turn)} />`}
        ${alternatives ? html`<${Alternatives} turn=${turn} alternatives=${alternatives} isBusy=${isBusy} />` : null}
      </div>
    </div>`}
    <div class="answered">
      <h2 class="only-heard">${t("turn.assistant")}</h2>
      ${turn.parts.map((part) => html`<${Part} key=${`${part.kind}-${part.id}`} part=${part}
        pending=${part.interrupt ? pending.find((call) => call.interrupt_id === part.interrupt) : null}
        choice=${part.interrupt ? choices[part.interrupt] : null} />`)}
      ${isRunning ? html`<${Working} turn=${turn} attempt=${attempt} stopping=${stopping} />` : null}
      ${turn.problem ? html`<${ProblemCard} problem=${turn.problem} onRetry=${isLast && !isBusy && turn.text ? () => send(turn.text) : null} />` : null}
      ${turn.status === "stopped" ? html`<p class="note"><${Icon} name="stop" />${t("turn.stopped")}</p>` : null}
      ${(turn.decision?.notices ?? []).map((notice) => html`<p class="note"><${Icon} name="warn" />${notice.text ?? notice.code}</p>`)}
      ${isRunning ? null : html`<div class="answer-tools">
        <${Badge} turn=${turn} />
        ${answer ? html`<${CopyButton} name=${t("turn.copy_answer")} text=${() => answer} />` : null}
        ${isLast && !isBusy && turn.id && turn.text && turn.status !== "waiting" && !turn.problem
          ? html`<${IconButton} icon="retry" name=${t("turn.regenerate")} onClick=${() => regenerate(turn)} />`
          : null}
      </div>`}
    </div>
  </li>`;
});

/** The way between the alternatives at a message: other words, or another answer. */
function Alternatives({ turn, alternatives, isBusy }) {
  const { current, thread_ids } = alternatives;
  const count = thread_ids.length;
  return html`<span class="alternatives" role="group" aria-label=${t("turn.version", { number: current + 1, count })}>
    <${IconButton} icon="back" name=${t("turn.previous")} disabled=${isBusy || current === 0} onClick=${() => openAlternative(turn, -1)} />
    <span aria-hidden="true">${current + 1} / ${count}</span>
    <${IconButton} icon="forth" name=${t("turn.next")} disabled=${isBusy || current + 1 === count} onClick=${() => openAlternative(turn, 1)} />
  </span>`;
}

function Part({ part, pending, choice }) {
  if (part.kind === "tool") return html`<${ToolCard} part=${part} pending=${pending} choice=${choice} />`;
  if (part.kind === "thinking") return html`<${Thinking} part=${part} />`;
  return html`<${Markdown} text=${part.text} done=${part.done} heard=${part.isNew} />`;
}

function Thinking({ part }) {
  const [isOpen, setOpen] = useState(false);
  return html`<section class="thinking">
    <button type="button" class="text-button" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      <${Icon} name="chevron" />${t(part.done ? "turn.thought" : "turn.thinking")}
    </button>
    ${isOpen ? html`<p class="thought" dir="auto">${part.text}</p>` : null}
  </section>`;
}

function Working({ turn, attempt, stopping }) {
  const last = turn.parts.at(-1);
  const isTalking = last?.kind === "text" && !last.done;
  const retrying = turn.retrying;
  let label = isTalking ? "" : t("turn.thinking");
  if (last?.kind === "tool" && last.status === "running") label = "";
  if (retrying) label = t("turn.retrying", { attempt: retrying.attempt + 1 });
  if (stopping) label = t("turn.stopping");
  if (attempt > 0) label = t("turn.lost", { attempt });
  return html`<p class=${classes("working", !label && "is-quiet")} role="status"><span class="pulse" aria-hidden="true" />${label}</p>`;
}

function Badge({ turn }) {
  const { decision } = turn;
  if (!decision?.decision_id) return null;
  const { usage = {}, timing_ms = {} } = decision;
  const parts = [words(decision.decision) || words(decision.outcome), duration(timing_ms.total), tokens(usage), cost(usage.cost_usd)].filter(Boolean);
  const name = t("turn.trace", { facts: parts.join(", ") });
  return html`<button type="button" class="badge" aria-label=${name} title=${t("turn.trace_title")} onClick=${() => openTrace(decision.decision_id)}>
    ${parts.join(" · ")}
  </button>`;
}

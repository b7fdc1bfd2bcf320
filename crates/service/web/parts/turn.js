// One turn: what the person said, what was done, what was answered; and, when it is asked for, how.

import { openAlternative } from "../actions/opening.js";
import { editTurn, regenerate, retry } from "../actions/sending.js";
import { grouped } from "../calls.js";
import { moment, when } from "../format.js";
import { t } from "../words.js";
import { html, memo, useRef, useState } from "./base.js";
import { CopyButton, IconButton } from "./button.js";
import { Calls } from "./calls.js";
import { Details, Working } from "./details.js";
import { useFar } from "./far.js";
import { Rating, Reason } from "./feedback.js";
import { FromMemory } from "./from-memory.js";
import { Icon } from "./icons.js";
import { Markdown } from "./markdown.js";
import { ProblemCard } from "./problem.js";
import { Toolbar } from "./toolbar.js";

export const Turn = memo(function Turn({ turn, isLast, isBusy, alternatives, pending, choices, attempt, unsent, stopping, known }) {
  const isRunning = turn.status === "running";
  const answer = turn.parts.filter((part) => part.kind === "text").map((part) => part.text).join("\n\n");
  const [isAsking, ask] = useState(false);
  const element = useRef(null);
  useFar(element);
  const mayRate = turn.id !== null && answer !== "" && turn.status !== "waiting";
  const mayRegenerate = isLast && !isBusy && turn.id && turn.text && turn.status !== "waiting" && !turn.problem;
  return html`<li class="turn" ref=${element} id=${`turn-${turn.key}`}>
    ${turn.text === null ? null : html`<div class="asked">
      <h2 class="only-heard">${t("turn.you")}</h2>
      <div class="bubble" dir="auto">${turn.text}</div>
      <${Toolbar} name=${t("turn.message_actions")} class="asked-tools">
        <time datetime=${turn.at} title=${moment(turn.at)}>${when(turn.at)}</time>
        <${CopyButton} name=${t("turn.copy_message")} text=${() => turn.text} />
        ${turn.id === null ? null : html`<${IconButton} icon="edit" name=${t("turn.edit_message")} class="icon-button when-idle" onClick=${() => editTurn(turn)} />`}
        ${alternatives ? html`<${Alternatives} turn=${turn} alternatives=${alternatives} isBusy=${isBusy} />` : null}
      <//>
    </div>`}
    <div class="answered">
      <h2 class="only-heard">${t("turn.assistant")}</h2>
      ${turn.memory.length ? html`<${FromMemory} turn=${turn} known=${known} />` : null}
      ${grouped(turn.parts).map((part) => part.kind === "calls"
        ? html`<${Calls} key=${`calls-${part.id}`} parts=${part.parts} pending=${pending} choices=${choices} />`
        : html`<${Markdown} key=${`text-${part.id}`} text=${part.text} done=${part.done} heard=${part.isNew} />`)}
      ${turn.problem ? html`<${ProblemCard} problem=${turn.problem} onRetry=${isLast && !isBusy && turn.text ? () => retry(turn) : null} />` : null}
      ${turn.status === "stopped" ? html`<p class="note"><${Icon} name="stop" />${t("turn.stopped")}</p>` : null}
      ${turn.status === "failed" && !turn.problem ? html`<p class="note"><${Icon} name="warn" />${t("turn.failed")}</p>` : null}
      ${(turn.decision?.notices ?? []).map((notice) => html`<p class="note"><${Icon} name="warn" />${notice.text ?? notice.code}</p>`)}
      ${isRunning
        ? html`<${Working} turn=${turn} attempt=${attempt} unsent=${unsent} stopping=${stopping} />`
        : html`<${Details} turn=${turn}>
            ${answer ? html`<${CopyButton} name=${t("turn.copy_answer")} text=${() => answer} />` : null}
            ${mayRegenerate ? html`<${IconButton} icon="retry" name=${t("turn.regenerate")} onClick=${() => (turn.status === "failed" ? retry(turn) : regenerate(turn))} />` : null}
            ${mayRate ? html`<${Rating} turn=${turn} isAsking=${isAsking} onAsk=${ask} />` : null}
          <//>
          ${mayRate && isAsking ? html`<${Reason} turn=${turn} onLeave=${() => ask(false)} />` : null}`}
    </div>
  </li>`;
});

/** Buttons to change between the alternatives of a message: an edited message, or another answer. */
function Alternatives({ turn, alternatives, isBusy }) {
  const { current, thread_ids } = alternatives;
  const count = thread_ids.length;
  return html`<span class="alternatives" role="group" aria-label=${t("turn.version", { number: current + 1, count })}>
    <${IconButton} icon="back" name=${t("turn.previous")} disabled=${isBusy || current === 0} onClick=${() => openAlternative(turn, -1)} />
    <span aria-hidden="true">${current + 1} / ${count}</span>
    <${IconButton} icon="forth" name=${t("turn.next")} disabled=${isBusy || current + 1 === count} onClick=${() => openAlternative(turn, 1)} />
  </span>`;
}

// An error: its text, and what a helper will ask for.

import { nextDay, timeOfDay } from "../format.js";
import { hasWords, t } from "../words.js";
import { html, useNow, useState } from "./base.js";
import { CopyButton } from "./button.js";
import { Icon } from "./icons.js";

/** `onRetry`, if given, may be used after `retry_after` seconds; not where the day has to end first. */
export function ProblemCard({ problem, onRetry, onClose }) {
  const { code, detail, message, hint, budget, request_id, run_id } = problem;
  const facts = [code && t("problem.code", { code }), request_id && t("problem.request", { id: request_id }), run_id && t("problem.turn", { id: run_id })].filter(Boolean);
  const mayRetry = onRetry && !budget;
  return html`<div class="problem" role="alert">
    <${Icon} name="warn" />
    <div class="problem-words">
      <strong>${titleOf(problem)}</strong>
      <p dir="auto">${detail ?? message}</p>
      ${budget === "day" ? html`<p>${t("budget.again", { when: timeOfDay(nextDay()) })}</p>` : null}
      ${hint ? html`<p class="muted">${hint}</p>` : null}
      ${mayRetry || onClose
        ? html`<div class="row">
            ${mayRetry ? html`<${RetryButton} after=${problem.retry_after} onRetry=${onRetry} />` : null}
            ${onClose ? html`<button type="button" class="button" onClick=${onClose}>${t("common.close")}</button>` : null}
          </div>`
        : null}
      ${facts.length
        ? html`<details class="quiet"><summary>${t("problem.facts")}</summary>
            <p class="facts"><code>${facts.join(" · ")}</code><${CopyButton} name=${t("problem.copy")} text=${() => facts.join("\n")} /></p></details>`
        : null}
    </div>
  </div>`;
}

/** Returns a problem's title: the one of its code in the language of the page, or else the service's. */
function titleOf({ code, title, budget }) {
  const key = `problem.title.${budget ? "budget" : code}`;
  return hasWords(key) ? t(key) : (title ?? t("problem.not_done"));
}

function RetryButton({ after, onRetry }) {
  const [until] = useState(() => Date.now() + (after ?? 0) * 1000);
  const left = Math.ceil((until - useNow(250, until > Date.now())) / 1000);
  // Stays in the order of focus while it waits.
  return html`<button type="button" class="button" aria-disabled=${left > 0} onClick=${() => left <= 0 && onRetry()}>
    <${Icon} name="retry" />${left > 0 ? t("common.again_in", { seconds: left }) : t("common.again")}
  </button>`;
}

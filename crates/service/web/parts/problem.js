// What did not work, in words, with what a person who helps will ask for.

import { hasWords, t } from "../words.js";
import { html, useNow, useState } from "./base.js";
import { CopyButton } from "./button.js";
import { Icon } from "./icons.js";

/** `onRetry`, if given, may be used after `retry_after` seconds. */
export function ProblemCard({ problem, onRetry, onClose }) {
  const { code, title, detail, message, hint, request_id, run_id } = problem;
  const facts = [code && t("problem.code", { code }), request_id && t("problem.request", { id: request_id }), run_id && t("problem.turn", { id: run_id })].filter(Boolean);
  return html`<div class="problem" role="alert">
    <${Icon} name="warn" />
    <div class="problem-words">
      <strong>${titleOf(code, title)}</strong>
      <p dir="auto">${detail ?? message}</p>
      ${hint ? html`<p class="muted">${hint}</p>` : null}
      ${facts.length ? html`<p class="facts"><code>${facts.join(" · ")}</code><${CopyButton} name=${t("problem.copy")} text=${() => facts.join("\n")} /></p>` : null}
      ${onRetry || onClose
        ? html`<div class="row">
            ${onRetry ? html`<${RetryButton} after=${problem.retry_after} onRetry=${onRetry} />` : null}
            ${onClose ? html`<button type="button" class="button" onClick=${onClose}>${t("common.close")}</button>` : null}
          </div>`
        : null}
    </div>
  </div>`;
}

/** What the service calls it, or else what its code means. */
function titleOf(code, title) {
  if (title && title !== t("problem.unknown")) return title;
  return hasWords(`problem.title.${code}`) ? t(`problem.title.${code}`) : (title ?? t("problem.not_done"));
}

function RetryButton({ after, onRetry }) {
  const [until] = useState(() => Date.now() + (after ?? 0) * 1000);
  const left = Math.ceil((until - useNow(250, until > Date.now())) / 1000);
  // Stays in the order of focus while it waits.
  return html`<button type="button" class="button" aria-disabled=${left > 0} onClick=${() => left <= 0 && onRetry()}>
    <${Icon} name="retry" />${left > 0 ? t("common.again_in", { seconds: left }) : t("common.again")}
  </button>`;
}

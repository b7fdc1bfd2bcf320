// What did not work, in words, with what a person who helps will ask for.

import { html, useNow, useState } from "./base.js";
import { CopyButton } from "./button.js";
import { Icon } from "./icons.js";

const TITLES = {
  rate_limit: "Too many requests to the model",
  quota: "The provider’s quota is used up",
  limit_reached: "Slow down a little",
  budget: "The budget is used up",
  timeout: "The model did not answer in time",
  network: "The model cannot be reached",
  server: "The model is not available",
  unavailable: "Not available right now",
  offline: "No connection",
};

/** `onRetry`, if given, may be used after `retry_after` seconds. */
export function ProblemCard({ problem, onRetry, onClose }) {
  const { code, title, detail, message, hint, request_id, run_id } = problem;
  const facts = [code && `code ${code}`, request_id && `request ${request_id}`, run_id && `turn ${run_id}`].filter(Boolean);
  return html`<div class="problem" role="alert">
    <${Icon} name="warn" />
    <div class="problem-words">
      <strong>${title && title !== "Something went wrong" ? title : (TITLES[code] ?? title ?? "That did not work")}</strong>
      <p dir="auto">${detail ?? message}</p>
      ${hint ? html`<p class="muted">${hint}</p>` : null}
      ${facts.length ? html`<p class="facts"><code>${facts.join(" · ")}</code><${CopyButton} name="Copy details" text=${() => facts.join("\n")} /></p>` : null}
      ${onRetry || onClose
        ? html`<div class="row">
            ${onRetry ? html`<${RetryButton} after=${problem.retry_after} onRetry=${onRetry} />` : null}
            ${onClose ? html`<button type="button" class="button" onClick=${onClose}>Close</button>` : null}
          </div>`
        : null}
    </div>
  </div>`;
}

function RetryButton({ after, onRetry }) {
  const [until] = useState(() => Date.now() + (after ?? 0) * 1000);
  const left = Math.ceil((until - useNow(250, until > Date.now())) / 1000);
  // Stays in the order of focus while it waits.
  return html`<button type="button" class="button" aria-disabled=${left > 0} onClick=${() => left <= 0 && onRetry()}>
    <${Icon} name="retry" />${left > 0 ? `Try again in ${left} s` : "Try again"}
  </button>`;
}

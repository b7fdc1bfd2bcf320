// A call: what was asked for, what came of it, and the question where a person has to say yes.

import { duration, pretty, words } from "../format.js";
import { t } from "../words.js";
import { classes, html, memo, useState } from "./base.js";
import { Confirmation } from "./confirmation.js";
import { Icon } from "./icons.js";

export const ToolCard = memo(function ToolCard({ part, pending, choice }) {
  const [opened, setOpened] = useState(null);
  if (part.status === "waiting" && pending) return html`<${Confirmation} call=${pending} choice=${choice} />`;
  // Open where something is to be seen, until the person says otherwise.
  const isOpen = opened ?? part.status === "failed";
  const { result } = part;
  const brief = part.summary ?? (part.status === "failed" ? result?.error : argsLine(part.args));
  return html`<div role="group" class=${classes("tool", `is-${part.status}`)} aria-label=${t("tool.name", { tool: part.name, state: t(`tool.${part.status}`) })}>
    <button type="button" class="tool-head" aria-expanded=${isOpen} onClick=${() => setOpened(!isOpen)}>
      <${Mark} status=${part.status} />
      <span class="tool-name">${words(part.name)}</span>
      <span class="tool-brief" dir="auto">${brief}</span>
      ${part.ms == null ? null : html`<span class="tool-ms">${duration(part.ms)}</span>`}
      <span class="only-heard">${t(`tool.${part.status}`)}</span>
      <${Icon} name="chevron" />
    </button>
    ${isOpen
      ? html`<div class="tool-body">
          <h3>${t("tool.call")}</h3>
          <${Json} value=${part.args ?? part.argsText ?? {}} name=${t("tool.arguments_of", { tool: part.name })} title=${part.name} />
          ${result
            ? html`<h3>${t(result.success ? "tool.result" : "tool.error")}</h3>
                <${Json} value=${result.success ? result.data : result.error} name=${t("tool.result_of", { tool: part.name })} />`
            : null}
        </div>`
      : null}
  </div>`;
});

function Mark({ status }) {
  if (status === "running") return html`<span class="spinner" aria-hidden="true" />`;
  const icon = { ok: "check", failed: "cross", open: "more", waiting: "help" }[status];
  return html`<span class="mark"><${Icon} name=${icon} /></span>`;
}

/** JSON or text, as text. */
export function Json({ value, name, title }) {
  const text = typeof value === "string" ? value : pretty(value ?? null);
  return html`<pre class="json" tabindex="0" role="group" aria-label=${name}><code dir="auto">${title ? `${title} ` : ""}${text}</code></pre>`;
}

/** The arguments in one line. */
function argsLine(args) {
  const values = Object.values(args ?? {});
  if (values.length === 0) return "";
  return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join(", ");
}

// The calls of a round in one block, one line for each. Opening a line shows arguments and result.

import { callWords, serverOf } from "../calls.js";
import { duration } from "../format.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { classes, html, memo, useInSight, useState } from "./base.js";
import { Confirmation } from "./confirmation.js";
import { Icon } from "./icons.js";
import { Json } from "./json.js";

/** So many lines are shown of a long block, beside those that want to be seen. */
const SHOWN = 5;
const ICONS = { ok: "check", failed: "warn", open: "more", waiting: "help", refused: "cross", settled: "check" };

export function Calls({ parts, pending, choices }) {
  const [isWhole, setWhole] = useState(false);
  const asked = parts.filter((part) => part.status === "waiting" && pending.some((call) => call.interrupt_id === part.interrupt));
  const told = parts.filter((part) => !asked.includes(part));
  const isFolded = !isWhole && told.length > SHOWN + 1;
  const shown = isFolded ? told.filter((part, at) => at < SHOWN || ["failed", "running", "waiting"].includes(part.status)) : told;
  return html`${told.length === 0
      ? null
      : html`<div role="group" class="calls" aria-label=${t("call.name")}>
          <ul>${shown.map((part) => html`<${Call} key=${part.id} part=${part} />`)}</ul>
          ${told.length > SHOWN + 1
            ? html`<button type="button" class="text-button calls-fold" aria-expanded=${isWhole} onClick=${() => setWhole(!isWhole)}>
                <${Icon} name="chevron" />${isWhole ? t("call.fewer") : t("call.more", { count: told.length - shown.length })}</button>`
            : null}
        </div>`}
    ${asked.map((part) => html`<${Confirmation} key=${part.id} call=${pending.find((call) => call.interrupt_id === part.interrupt)} choice=${choices[part.interrupt]} />`)}`;
}

const Call = memo(function Call({ part }) {
  const [isOpen, setOpen] = useState(false);
  const { text, why, at } = callWords(part, state.me.tools);
  const server = serverOf(part.name);
  const element = useInSight(isOpen);
  return html`<li class=${classes("tool", `is-${part.status}`)} ref=${element}>
    <button type="button" class="tool-head" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>
      ${part.status === "running" ? html`<span class="spinner" aria-hidden="true" />` : html`<span class="mark"><${Icon} name=${ICONS[part.status]} /></span>`}
      <span class="tool-words" dir="auto">${text}</span>
      ${server ? html`<span class="tool-server">${server}</span>` : null}
      <span class="only-heard">${t(`tool.${part.status}`)}</span>
      <${Icon} name="chevron" />
    </button>
    ${why ? html`<p class="tool-why" dir="auto">${why}</p>` : null}
    ${at ? html`<p class="tool-at" dir="auto">${at}</p>` : null}
    ${isOpen ? html`<${Machine} part=${part} />` : null}
  </li>`;
});

/** The call as the machine sees it. */
function Machine({ part }) {
  const { result } = part;
  return html`<div class="tool-body">
    <p class="muted"><code>${part.name}</code>${part.ms == null ? null : html` · <span class="digits">${duration(part.ms)}</span>`}</p>
    <h3>${t("ask.arguments")}</h3>
    <${Json} value=${part.args ?? part.argsText ?? {}} name=${t("tool.arguments_of", { tool: part.name })} />
    ${result
      ? html`<h3>${t(result.success ? "tool.result" : "tool.error")}</h3>
          <${Json} value=${result.success ? result.data : result.error} name=${t("tool.result_of", { tool: part.name })} />`
      : null}
  </div>`;
}

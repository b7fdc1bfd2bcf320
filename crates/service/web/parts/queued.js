// What was written while an answer is coming, and is sent when it has ended.

import { focusComposer } from "../actions/layout.js";
import { editQueued } from "../actions/sending.js";
import { takeBack } from "../queue.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { html } from "./base.js";
import { IconButton } from "./button.js";

export function Queued() {
  const { queued } = state;
  if (queued.length === 0) return null;
  return html`<section class="queued" aria-label=${t("queue.name")}>
    <p class="muted" role="status">${t("queue.waits", { count: queued.length })}</p>
    <ul>${queued.map(({ id, text }) => html`<li key=${id}>
      <span class="queued-words" dir="auto">${text}</span>
      <${IconButton} icon="edit" name=${t("queue.edit")} onClick=${() => editQueued(id)} />
      <${IconButton} icon="cross" name=${t("queue.remove")} onClick=${() => { takeBack(id); focusComposer(); }} />
    </li>`)}</ul>
  </section>`;
}

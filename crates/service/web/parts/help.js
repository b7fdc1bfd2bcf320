// The keys.

import { remember, setting } from "../settings.js";
import { set } from "../state.js";
import { t } from "../words.js";
import { html, typed, useEffect, useRef, useState } from "./base.js";

const keys = () => [
  [t("keys.enter"), t("keys.send")],
  [t("keys.shift_enter"), t("keys.line")],
  [t("keys.up"), t("keys.last")],
  [t("keys.esc"), t("keys.stop")],
  [t("keys.alt", { key: "N" }), t("keys.new")],
  [t("keys.alt", { key: "T" }), t("keys.tasks")],
  [t("keys.alt", { key: "R" }), t("keys.trace")],
  [t("keys.ctrl", { key: "K" }), t("keys.search")],
  ["/", t("keys.write"), true],
  ["?", t("keys.these"), true],
];

export function Help() {
  const dialog = useRef(null);
  const [singles, setSingles] = useState(setting("single-keys", true));
  useEffect(() => dialog.current.showModal(), []);
  const close = () => set({ help: false });
  return html`<dialog ref=${dialog} class="dialog" aria-labelledby="help-title" onClose=${close} onClick=${(event) => event.target === dialog.current && dialog.current.close()}>
    <h2 id="help-title">${t("keys.title")}</h2>
    <dl class="keys">
      ${keys().map(([key, what, single]) => html`<div class=${single && !singles ? "is-off" : ""}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}
    </dl>
    <label class="check"><input type="checkbox" checked=${singles} onChange=${(event) => { setSingles(event.target.checked); remember("single-keys", event.target.checked); }} />
      <span>${typed(t("keys.single"), "kbd")}</span></label>
    <form method="dialog" class="row is-end"><button type="submit" class="button is-main">${t("common.close")}</button></form>
  </dialog>`;
}

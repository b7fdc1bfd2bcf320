// The keys.

import { remember, setting } from "../settings.js";
import { set } from "../state.js";
import { html, useEffect, useRef, useState } from "./base.js";

const KEYS = [
  ["Enter", "Send"],
  ["Shift + Enter", "New line"],
  ["↑ in an empty message", "Your last message again"],
  ["Esc", "Stop the answer; close what is open"],
  ["Alt + N", "New conversation"],
  ["Alt + T", "Tasks"],
  ["Alt + R", "Trace"],
  ["/", "Write a message", true],
  ["?", "These keys", true],
];

export function Help() {
  const dialog = useRef(null);
  const [singles, setSingles] = useState(setting("single-keys", true));
  useEffect(() => dialog.current.showModal(), []);
  const close = () => set({ help: false });
  return html`<dialog ref=${dialog} class="dialog" aria-labelledby="help-title" onClose=${close} onClick=${(event) => event.target === dialog.current && dialog.current.close()}>
    <h2 id="help-title">Keyboard</h2>
    <dl class="keys">
      ${KEYS.map(([key, what, single]) => html`<div class=${single && !singles ? "is-off" : ""}><dt><kbd>${key}</kbd></dt><dd>${what}</dd></div>`)}
    </dl>
    <label class="check"><input type="checkbox" checked=${singles} onChange=${(event) => { setSingles(event.target.checked); remember("single-keys", event.target.checked); }} />
      Single keys (<kbd>/</kbd> and <kbd>?</kbd>) outside of text fields</label>
    <form method="dialog" class="row is-end"><button type="submit" class="button is-main">Close</button></form>
  </dialog>`;
}

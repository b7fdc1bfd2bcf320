// The settings: of the page, kept in this browser, and the tools that the person always allows.

import { chooseNotifying, notifying } from "../notify.js";
import { remember, setting } from "../settings.js";
import { set } from "../state.js";
import { chooseTheme, THEMES, themeNow } from "../theme.js";
import { LANGUAGES, languageNow, loadWords, t } from "../words.js";
import { AllowedTools } from "./allowed-tools.js";
import { html, useEffect, useRef, useState } from "./base.js";

/** The language of the browser, whatever it is. */
const BROWSERS = "";

/** The field that has the focus next: in another language, or with other formulas, all of this is drawn anew. */
let next = null;

export function Settings() {
  const dialog = useRef(null);
  const [, redraw] = useState(0);
  const again = () => redraw((times) => times + 1);
  useEffect(() => {
    dialog.current.showModal();
    if (next !== null) document.getElementById(next)?.focus();
    next = null;
  }, []);
  const language = async (event) => {
    remember("language", event.target.value || null);
    next = event.target.id;
    await loadWords();
    set({ language: languageNow() });
  };
  const math = (event) => {
    remember("math", event.target.checked);
    next = event.target.id;
    set({});
  };
  const notify = notifying();
  const canNotify = notify === "on" || notify === "off";
  return html`<dialog ref=${dialog} class="dialog" aria-labelledby="settings-title" onClose=${() => set({ settings: false })} onClick=${(event) => event.target === dialog.current && dialog.current.close()}>
    <h2 id="settings-title">${t("settings.title")}</h2>
    <div class="field"><label for="settings-theme">${t("settings.theme")}</label>
      <select id="settings-theme" value=${themeNow()} onChange=${(event) => { chooseTheme(event.target.value); again(); }}>
        ${THEMES.map((theme) => html`<option value=${theme}>${t(`settings.theme.${theme}`)}</option>`)}
      </select></div>
    <div class="field"><label for="settings-language">${t("settings.language")}</label>
      <select id="settings-language" value=${setting("language", null) ?? BROWSERS} onChange=${language}>
        <option value=${BROWSERS}>${t("settings.language.browser")}</option>
        ${Object.entries(LANGUAGES).map(([code, name]) => html`<option value=${code} lang=${code}>${name}</option>`)}
      </select></div>
    <label class="check"><input id="settings-math" type="checkbox" checked=${setting("math", true)} onChange=${math} />
      <span>${t("settings.math")}</span></label>
    <label class="check"><input type="checkbox" checked=${notify === "on"} disabled=${!canNotify} aria-describedby="settings-notify"
        onChange=${async (event) => { await chooseNotifying(event.target.checked); again(); }} />
      <span>${t("settings.notify")}</span></label>
    <p class="muted" id="settings-notify">${t(`settings.notify.${notify}`)}</p>
    <p class="muted">${t("settings.where")}</p>
    <${AllowedTools} />
    <form method="dialog" class="row is-end"><button type="submit" class="button is-main">${t("common.close")}</button></form>
  </dialog>`;
}

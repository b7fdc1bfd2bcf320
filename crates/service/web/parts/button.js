// Buttons that say what became of them.

import { t } from "../words.js";
import { copy, html, say, useEffect, useState } from "./base.js";
import { Icon } from "./icons.js";

/** A button that is only an icon; `name` is what it is called. */
export function IconButton({ icon, name, ...rest }) {
  return html`<button type="button" class="icon-button" aria-label=${name} title=${name} ...${rest}><${Icon} name=${icon} /></button>`;
}

/** Copies what `text` gives when it is pressed. */
export function CopyButton({ text, name = t("common.copy"), shown = false }) {
  const [isDone, setDone] = useState(false);
  useEffect(() => {
    if (!isDone) return undefined;
    const timer = setTimeout(() => setDone(false), 1500);
    return () => clearTimeout(timer);
  }, [isDone]);
  const press = async () => {
    const done = await copy(text());
    setDone(done);
    say(t(done ? "common.copied" : "common.copy_refused"));
  };
  return html`<button type="button" class=${shown ? "text-button" : "icon-button"} aria-label=${name} title=${name} onClick=${press}>
    <${Icon} name=${isDone ? "check" : "copy"} />${shown ? html`<span>${isDone ? t("common.copied") : name}</span>` : null}
  </button>`;
}

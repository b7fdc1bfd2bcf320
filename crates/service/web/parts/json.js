// JSON, as the machine's view shows it.

import { pretty } from "../format.js";
import { html } from "./base.js";

/** JSON or text, as text. */
export function Json({ value, name, title }) {
  const text = typeof value === "string" ? value : pretty(value ?? null);
  return html`<pre class="json" tabindex="0" role="group" aria-label=${name}><code dir="auto">${title ? `${title} ` : ""}${text}</code></pre>`;
}

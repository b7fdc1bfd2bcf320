// A block of code in its full height: its language and what one can do with it, above; coloured when it is complete.

import { classes, copy, html, say, useEffect, useMemo, useState } from "../parts/base.js";
import { beginning, pieces } from "../text.js";
import { t } from "../words.js";
import { highlighted } from "./highlight.js";

// A text node is written again as a whole, so that long code that still grows is many of them.
const PIECE = 8_192;

export function CodeBlock({ code, language, isComplete }) {
  const [colours, setColours] = useState(null);
  useEffect(() => {
    if (!isComplete || language === "") return undefined;
    let isWanted = true;
    highlighted(code, language).then((scopes) => isWanted && setColours(scopes && { code, scopes }));
    return () => (isWanted = false);
  }, [code, language, isComplete]);
  const shown = useMemo(() => (colours?.code === code ? coloured(colours.scopes) : pieces(code, PIECE)), [colours, code]);
  const [isWrapped, setWrapped] = useState(false);
  return html`<figure class=${classes("code", isWrapped && "is-wrapped")}>
    <figcaption><span>${beginning(language, 24)}</span>
      <button type="button" class="text-button" aria-pressed=${isWrapped} onClick=${() => setWrapped(!isWrapped)}>${t("code.wrap")}</button>
      ${isComplete ? html`<button type="button" class="text-button" onClick=${() => save(code, language)}>${t("code.save")}</button>` : null}
      <${CopyCode} code=${code} /></figcaption>
    <pre tabindex="0" role="group" aria-label=${t("markdown.code")}><code>${shown}</code></pre>
  </figure>`;
}

function CopyCode({ code }) {
  const [outcome, setOutcome] = useState(null);
  useEffect(() => {
    if (outcome === null) return undefined;
    const timer = setTimeout(() => setOutcome(null), 1500);
    return () => clearTimeout(timer);
  }, [outcome]);
  const press = async () => {
    // Without the last line's end: pasted into a shell, it would be run at once.
    const words = (await copy(code.replace(/\n$/, ""))) ? t("code.copied") : t("code.not_copied");
    setOutcome(words);
    say(words);
  };
  return html`<button type="button" class="text-button" aria-label=${outcome ?? t("code.copy")} onClick=${press}>${outcome ?? t("common.copy")}</button>`;
}

/** Endings of files of the languages whose names are none. */
const ENDINGS = { bash: "sh", csharp: "cs", javascript: "js", kotlin: "kt", markdown: "md", perl: "pl", python: "py", ruby: "rb", rust: "rs", shell: "sh", typescript: "ts", "c++": "cpp" };

/** Has the browser save code as a file. */
function save(code, language) {
  const name = language.toLowerCase();
  const ending = ENDINGS[name] ?? (/^[a-z0-9]{1,5}$/.test(name) ? name : "txt");
  const address = URL.createObjectURL(new Blob([code], { type: "text/plain" }));
  const link = Object.assign(document.createElement("a"), { href: address, download: `code.${ending}` });
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function coloured(scopes) {
  return scopes.map((scope) => (typeof scope === "string" ? scope : html`<span class=${`hl-${scope.name}`}>${coloured(scope.children)}</span>`));
}

// The words of a message, as they come.

import { MarkdownWriter } from "../markdown.js";
import { t } from "../words.js";
import { copy, html, memo, say, useLayoutEffect, useRef } from "./base.js";

export const Markdown = memo(function Markdown({ text, done, heard }) {
  const root = useRef(null);
  const writer = useRef(null);
  const ended = useRef(false);
  useLayoutEffect(() => {
    // One that ended takes nothing more: other words begin anew.
    if (writer.current === null || (ended.current && !done)) {
      writer.current = new MarkdownWriter(root.current, { onBlock: (block) => heard && say(block), codeHead });
      ended.current = false;
    }
    if (ended.current) return;
    writer.current.show(text);
    if (done) {
      writer.current.end();
      ended.current = true;
    }
  }, [text, done]);
  return html`<div class="markdown" ref=${root} />`;
});

/** What stands above a code block: its language (by CSS), and a button. Plain nodes, as the writer makes them. */
function codeHead(code) {
  const head = document.createElement("figcaption");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "text-button";
  button.textContent = t("code.copy");
  button.addEventListener("click", async () => {
    const done = await copy(code());
    button.textContent = t(done ? "code.copied" : "code.not_copied");
    say(button.textContent);
    setTimeout(() => (button.textContent = t("code.copy")), 1500);
  });
  head.append(button);
  return head;
}

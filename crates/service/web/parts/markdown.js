// The words of a message, as they come.

import { MarkdownWriter } from "../markdown.js";
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
  button.textContent = "Copy code";
  button.addEventListener("click", async () => {
    const done = await copy(code());
    button.textContent = done ? "Copied" : "Not copied";
    say(button.textContent);
    setTimeout(() => (button.textContent = "Copy code"), 1500);
  });
  head.append(button);
  return head;
}

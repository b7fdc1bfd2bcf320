// The model's words as nodes. The only module that knows the markdown parser, so that it can be swapped.
//
// Text becomes text nodes, never HTML. Nothing is loaded: an image is a link to it. Links lead to http, https, mailto and
// obsidian, and open elsewhere.

import * as smd from "./vendor/streaming-markdown.min.js";
import { t } from "./words.js";

// The parser keeps a fixed number of open elements (24) and loses its way beyond.
const DEPTH_MAX = 18;
// What it has not decided on yet it reads again with each character: so many characters at most.
const UNDECIDED_MAX = 8_192;
// Characters that are written between two looks at that.
const SLICE = 1_024;
const SCHEMES = new Set(["http:", "https:", "mailto:", "obsidian:"]);

/** The address of a link that may be followed, or `null`. Relative ones are the page's own, and are no links. */
export function linkTarget(address) {
  try {
    const url = new URL(address.trim());
    return SCHEMES.has(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

class TooMuch extends Error {}

/** Writes into `root`. `onBlock(text)` hears each finished block; `onCode(code)` makes what stands above a code block. */
export class MarkdownWriter {
  #root;
  #parser;
  #written = "";
  #nodes;
  #plain = null;
  #onBlock;
  #codeHead;

  constructor(root, { onBlock = () => {}, codeHead = () => null } = {}) {
    this.#root = root;
    this.#onBlock = onBlock;
    this.#codeHead = codeHead;
    this.#begin();
  }

  #begin() {
    this.#root.replaceChildren();
    this.#nodes = [this.#root];
    this.#written = "";
    this.#plain = null;
    this.#parser = smd.parser({
      data: null,
      add_token: (_, type) => this.#open(type),
      end_token: () => this.#close(),
      add_text: (_, text) => this.#nodes.at(-1).append(text),
      set_attr: (_, type, value) => this.#attribute(type, value),
    });
  }

  /** Shows `text`, of which what was shown before is usually the beginning. */
  show(text) {
    if (!text.startsWith(this.#written)) this.#begin();
    const more = text.slice(this.#written.length);
    this.#written = text;
    if (more === "") return;
    this.#guarded(() => this.#write(more), more);
  }

  #write(more) {
    for (let at = 0; at < more.length; at += SLICE) {
      smd.parser_write(this.#parser, more.slice(at, at + SLICE));
      if (this.#parser.pending.length > UNDECIDED_MAX) throw new TooMuch();
    }
  }

  /** Nothing comes any more. */
  end() {
    this.#guarded(() => smd.parser_end(this.#parser), "");
    // What is left open has no end in the text.
    while (this.#plain === null && this.#nodes.length > 1) this.#close();
    if (this.#plain !== null) this.#onBlock(this.#plain.textContent);
  }

  /** What the parser cannot take is shown as it is, instead of wrongly or not at all. */
  #guarded(write, more) {
    if (this.#plain !== null) {
      this.#plain.append(more);
      return;
    }
    try {
      write();
    } catch {
      this.#plain = element("p", "md-plain");
      this.#plain.append(this.#written);
      this.#root.replaceChildren(this.#plain);
    }
  }

  #open(type) {
    if (type === 1) return; // the document itself
    if (this.#nodes.length > DEPTH_MAX) throw new TooMuch();
    const node = this.#node(type);
    this.#nodes.push(node);
  }

  #node(type) {
    const parent = this.#nodes.at(-1);
    const put = (node) => parent.appendChild(node);
    switch (type) {
      case smd.PARAGRAPH: return put(element("p"));
      case smd.HEADING_1: case smd.HEADING_2: case smd.HEADING_3:
      case smd.HEADING_4: case smd.HEADING_5: case smd.HEADING_6:
        // One level for all: the outline of the page is ours. The look is by class.
        return put(element("h3", `md-h${type - smd.HEADING_1 + 1}`));
      case smd.CODE_BLOCK: case smd.CODE_FENCE: {
        const figure = put(element("figure", "code"));
        const pre = element("pre");
        const code = pre.appendChild(element("code"));
        pre.tabIndex = 0;
        pre.setAttribute("role", "group");
        pre.setAttribute("aria-label", t("markdown.code"));
        figure.append(this.#codeHead(() => code.textContent) ?? "", pre);
        return code;
      }
      case smd.CODE_INLINE: return put(element("code"));
      case smd.ITALIC_AST: case smd.ITALIC_UND: return put(element("em"));
      case smd.STRONG_AST: case smd.STRONG_UND: return put(element("strong"));
      case smd.STRIKE: return put(element("s"));
      case smd.LINK: case smd.RAW_URL: return put(element("a"));
      case smd.IMAGE: {
        const link = put(element("a", "md-image"));
        link.append("🖼 ");
        return link;
      }
      case smd.BLOCKQUOTE: return put(element("blockquote"));
      case smd.LINE_BREAK: return put(element("br"));
      case smd.RULE: return put(element("hr"));
      case smd.LIST_UNORDERED: return put(element("ul"));
      case smd.LIST_ORDERED: return put(element("ol"));
      case smd.LIST_ITEM: return put(element("li"));
      case smd.CHECKBOX: {
        const box = put(element("span", "md-check"));
        box.setAttribute("role", "img");
        box.setAttribute("aria-label", t("markdown.not_done"));
        return box;
      }
      case smd.TABLE: {
        const frame = put(element("div", "md-table"));
        frame.tabIndex = 0;
        frame.setAttribute("role", "group");
        frame.setAttribute("aria-label", t("markdown.table"));
        return frame.appendChild(element("table"));
      }
      case smd.TABLE_ROW: {
        const part = parent.children.length === 0 ? element("thead") : (parent.children[1] ?? element("tbody"));
        if (part.parentNode !== parent) parent.append(part);
        return part.appendChild(element("tr"));
      }
      case smd.TABLE_CELL: return put(element(parent.parentNode.tagName === "THEAD" ? "th" : "td"));
      case smd.EQUATION_BLOCK: case smd.EQUATION_INLINE: return put(element("code", "md-equation"));
      default: return put(element("span"));
    }
  }

  #close() {
    const node = this.#nodes.pop();
    if (this.#nodes.length === 1) this.#onBlock(node.textContent);
  }

  #attribute(type, value) {
    const node = this.#nodes.at(-1);
    if (type === smd.HREF || type === smd.SRC) {
      const target = linkTarget(value);
      if (target === null) return;
      node.href = target;
      node.rel = "noopener noreferrer nofollow";
      node.target = "_blank";
      node.title = target;
      if (type === smd.SRC && node.textContent.trim() === "🖼") node.append(target);
    } else if (type === smd.LANG) {
      const head = node.closest("figure")?.querySelector("figcaption");
      if (head) head.dataset.language = value.trim().slice(0, 24);
    } else if (type === smd.CHECKED) {
      node.classList.add("is-done");
      node.setAttribute("aria-label", t("markdown.done"));
    } else if (type === smd.START) {
      const start = Number(value);
      if (Number.isSafeInteger(start)) node.start = start;
    }
  }
}

function element(name, className) {
  const node = document.createElement(name);
  if (className) node.className = className;
  // Each block finds its own direction.
  if (["p", "h3", "li", "blockquote", "th", "td"].includes(name)) node.dir = "auto";
  return node;
}

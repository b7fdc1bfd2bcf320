// Tokens as nodes of the page. Text becomes text nodes, never HTML, and nothing is loaded: an image is a link to it.

import { h } from "../vendor/htm-preact-standalone.module.js";
import { t } from "../words.js";
import { CodeBlock } from "./code.js";
import { Equation } from "./equation.js";
import { linkTarget } from "./links.js";
import { NoteLink } from "./note-link.js";
import { languageOf } from "./parser.js";

// Marks within each other in one line; those beyond are shown as they are. A page whose nodes go deeper breaks.
const MARKS_MAX = 40;
// Lists and quotations that are indented; those within take no more of the width.
const INDENTS_MAX = 6;
const TASK = /^\[([ xX])\][ \t]+(?=\S)/;

/** The nodes of a block. `isFinal` says that nothing of it changes any more. */
export function nodes({ tokens, isFinal }) {
  const builder = new Builder(isFinal);
  tokens.forEach((token, at) => builder.take(token, tokens, at));
  return builder.result();
}

class Builder {
  #isFinal;
  #stack = [{ children: [] }];
  #indents = 0;

  constructor(isFinal) {
    this.#isFinal = isFinal;
  }

  result() {
    return this.#stack[0].children;
  }

  #put(...children) {
    this.#stack.at(-1).children.push(...children);
  }

  #open(make) {
    this.#stack.push({ make, children: [] });
  }

  #close() {
    const { make, children } = this.#stack.pop();
    this.#put(...make(children));
  }

  #element(name, properties) {
    this.#open((children) => [h(name, properties, children)]);
  }

  #indented(name, properties, by) {
    this.#indents += by;
    this.#element(name, this.#indents > INDENTS_MAX ? { ...properties, class: "md-flat" } : properties);
  }

  take(token, tokens, at) {
    const { type } = token;
    switch (type) {
      case "inline": return this.#inline(token.children);
      case "paragraph_open": return token.hidden ? this.#open((children) => children) : this.#element("p", { dir: "auto" });
      // All headings have one level, because the outline belongs to the page. Their style depends on the class.
      case "heading_open": return this.#element("h3", { class: `md-${token.tag}`, dir: "auto" });
      case "details_open": return this.#element("details", { class: "md-details", open: !token.meta.isClosed });
      case "summary_open": return this.#element("summary", { dir: "auto" });
      case "blockquote_open": return this.#indented("blockquote", { dir: "auto" }, 1);
      case "bullet_list_open": return this.#indented("ul", {}, 1);
      case "ordered_list_open": return this.#indented("ol", { start: token.attrGet("start") ?? undefined }, 1);
      case "list_item_open": {
        this.#element("li", { dir: "auto" });
        const task = taskIn(tokens, at);
        if (task !== null) this.#put(checkbox(task));
        return undefined;
      }
      case "table_open":
        return this.#open((children) => [h("div", { class: "md-table", tabIndex: 0, role: "group", "aria-label": t("markdown.table") }, h("table", null, children))]);
      case "thead_open": case "tbody_open": case "tr_open": return this.#element(token.tag, null);
      case "th_open": case "td_open": return this.#element(token.tag, { dir: "auto", class: alignment(token) });
      case "blockquote_close": case "bullet_list_close": case "ordered_list_close":
        this.#indents -= 1;
        return this.#close();
      case "hr": return this.#put(h("hr"));
      case "fence": case "code_block":
        return this.#put(h(CodeBlock, { code: token.content, language: languageOf(token), isComplete: this.#isFinal || at + 1 < tokens.length }));
      case "html_block": return this.#put(plain(token.content.replace(/\n$/, "")));
      case "plain": return this.#put(plain(token.content));
      case "plain_inline": return this.#put(h("span", { class: "md-plain" }, token.content));
      case "math": return this.#put(equation(token));
      default: return token.nesting < 0 ? this.#close() : undefined;
    }
  }

  /** Adds the nodes of a line's tokens. Marks beyond `MARKS_MAX` within each other stay text. */
  #inline(tokens) {
    let depth = 0;
    for (const token of tokens) {
      switch (token.type) {
        case "text": this.#put(token.content); break;
        case "html_inline": this.#put(token.content); break;
        case "code_inline": this.#put(h("code", null, token.content)); break;
        case "softbreak": this.#put("\n"); break;
        case "hardbreak": this.#put(h("br")); break;
        case "image": this.#put(image(token, tokens)); break;
        case "math": this.#put(equation(token)); break;
        case "note": this.#put(h(NoteLink, { ...token.meta, shown: token.content })); break;
        case "em_open": case "strong_open": case "s_open": case "link_open": case "tag_open":
          depth += 1;
          if (depth > MARKS_MAX) this.#open((children) => [token.markup, ...children, token.markup.replace(/^</, "</")]);
          else if (token.type === "link_open") this.#open((children) => [link(token.attrGet("href"), token.attrGet("title"), children)]);
          else this.#element(token.tag, null);
          break;
        case "em_close": case "strong_close": case "s_close": case "link_close": case "tag_close":
          depth -= 1;
          this.#close();
          break;
        default: // An address that may not be finished: its text comes by itself.
      }
    }
  }
}

/** The text of a block, for screen readers. */
export function words({ tokens }) {
  const said = [];
  for (const { type, content, children } of tokens) {
    if (type === "inline") said.push(inlineWords(children));
    else if (["fence", "code_block", "html_block", "plain", "plain_inline", "math"].includes(type)) said.push(content);
  }
  return said.join("\n");
}

function inlineWords(tokens) {
  return tokens.map((token) => (token.type === "image" ? inlineWords(token.children) : token.type.endsWith("break") ? "\n" : token.type.startsWith("tag_") ? "" : token.content)).join("");
}

/** Returns whether the task that is opened at `at` is done, and takes its mark from the words. `null`: the item is no task. */
function taskIn(tokens, at) {
  const [paragraph, inline] = [tokens[at + 1], tokens[at + 2]];
  const found = paragraph?.type === "paragraph_open" && inline.type === "inline" ? TASK.exec(inline.content) : null;
  const first = inline?.children?.[0];
  if (found === null || first?.type !== "text" || !first.content.startsWith(found[0].trimEnd())) return null;
  inline.children = [Object.assign(Object.create(first), { content: first.content.slice(3).trimStart() }), ...inline.children.slice(1)];
  inline.content = "";
  return found[1] !== " ";
}

function checkbox(isDone) {
  return h("span", { class: isDone ? "md-check is-done" : "md-check", role: "img", "aria-label": isDone ? t("markdown.done") : t("markdown.not_done") });
}

function alignment(token) {
  const found = /text-align:(left|center|right)/.exec(token.attrGet("style") ?? "");
  return found === null ? undefined : `md-${found[1]}`;
}

function plain(text) {
  return h("p", { class: "md-plain", dir: "auto" }, text);
}

/** A link, or what stands in it where its address may not be followed. */
function link(address, title, children, className) {
  const target = linkTarget(address);
  if (target === null) return h("span", { class: className ?? "md-no-link", title: [title, address].filter(Boolean).join("\n") }, children);
  return h("a", { class: className, href: target, rel: "noopener noreferrer nofollow", target: "_blank", title: title ? `${title}\n${target}` : target }, children);
}

function image(token, siblings) {
  const address = token.attrGet("src");
  const shown = ["🖼 ", inlineWords(token.children) || linkTarget(address) || address];
  // A link holds no other one.
  const isLinked = siblings.slice(0, siblings.indexOf(token)).reduce((open, { type }) => open + (type === "link_open") - (type === "link_close"), 0) > 0;
  return isLinked ? h("span", { class: "md-image" }, shown) : link(address, token.attrGet("title"), shown, "md-image");
}

function equation({ content, markup, meta }) {
  return h(Equation, { source: content, markup, isDisplay: meta.display });
}

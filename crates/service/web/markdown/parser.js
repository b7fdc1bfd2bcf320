// The model's text as tokens: CommonMark with GitHub's tables, task lists, strikethrough and bare addresses.
//
// The only module that knows the library, so that it can be swapped. Tokens become nodes in `nodes.js`.

import MarkdownIt from "../vendor/markdown-it.esm.min.js";
import { addMath } from "./math-rules.js";
import { addNotes } from "./note-rule.js";
import { addTags } from "./tag-rules.js";

// Lists and quotations within each other; what is deeper is shown as it is. A list and its item are two levels.
const LEVELS_MAX = 40;
// Characters of one paragraph, heading or cell; a longer one is shown as it is. Nobody writes such a paragraph, and some
// marks without an end would take the square of its length.
const INLINE_MAX = 16_384;
const ADDRESS_MAX = 4_096;

const parser = new MarkdownIt("default", { html: true, linkify: true, typographer: false });
// Every link is one here, as in the specification; which of them may be followed is decided where nodes are made.
parser.validateLink = () => true;
// Where a definition stands is how one knows that it is final.
parser.core.ruler.disable("strip_references");
addAddresses(parser.linkify);
parser.block.ruler.before("table", "too_deep", tooDeep);
parser.block.ruler.before("table", "unfinished", unfinished);
parser.core.ruler.at("inline", inline);
parser.core.ruler.push("unfinished_address", unfinishedAddress);
wrap(parser.block.ruler, "table", finishedTable, ["paragraph", "reference"]);
wrap(parser.block.ruler, "lheading", finishedUnderline);
wrap(parser.block.ruler, "reference", finishedDefinition);
addMath(parser);
addNotes(parser);
addTags(parser);

/** The language that a block of code names, as it is meant: `c&#43;&#43;` is `c++`. */
export function languageOf({ info }) {
  return parser.utils.unescapeAll(info).trim().split(/\s/, 1)[0];
}

/**
 * The tokens of `source`.
 *
 * `isOpen` says that more of it may come. Then a last line without its end may still become something else, and what would
 * only be guessed of it is not: a mark of a list or a heading without its text, the underline of a heading, the second line of
 * a table, the address of a definition, and a bare address stay words until what follows has decided.
 *
 * `known(label)` gives a definition from elsewhere; `defined` holds those in `source` afterwards.
 */
export function parse(source, { isOpen = false, math = false, notes = false, known = () => undefined } = {}) {
  const defined = Object.create(null);
  const isCut = isOpen && source !== "" && !source.endsWith("\n");
  const env = { math, notes, openLine: isCut ? lines(source) : Infinity, asked: null };
  env.references = new Proxy(defined, {
    get(own, label) {
      const found = known(label);
      if (found === undefined) env.asked?.add(label);
      return found ?? own[label];
    },
  });
  return { tokens: parser.parse(source, env), defined, openLine: env.openLine };
}

function lines(source) {
  let count = 0;
  for (let at = source.indexOf("\n"); at >= 0; at = source.indexOf("\n", at + 1)) count += 1;
  return count;
}

/** Bare addresses: `https:`, `http:`, `mailto:`, `www.` and those of mail. A file's name is none, whatever its ending. */
function addAddresses(linkify) {
  linkify.add("//", null).add("ftp:", null);
  for (const scheme of ["http:", "https:"]) {
    linkify.add(scheme, { validate: (text, at, { re }) => addressLength(re, text.slice(at, at + ADDRESS_MAX)) });
  }
  linkify.add("www.", {
    validate(text, at, { re }) {
      const host = text.slice(at, at + ADDRESS_MAX);
      return /^[^/?#\s]+\.[^/?#\s]/.test(host) ? Math.max(0, addressLength(re, `//${host}`) - 2) : 0;
    },
    normalize(match) {
      match.url = `http://${match.url}`;
    },
  });
}

/** Returns the length of the address at the start of `text`, without what ends a sentence, a mark or a footnote's sign behind it. */
function addressLength(re, text) {
  const address = re.get_http_validator();
  address.lastIndex = 0;
  let length = address.exec(text)?.[0].length ?? 0;
  const footnote = text.slice(0, length).indexOf("[^");
  if (footnote >= 0) length = footnote;
  while (length > 0 && "?!.,:*_~'\"".includes(text[length - 1])) length -= 1;
  return length;
}

/**
 * Has `around` decide when a rule of the library is asked; `alt` names the blocks that it may end, as in the library. That
 * lists the rules that are on, but not under their names.
 */
function wrap(ruler, name, around, alt = []) {
  const all = ruler.getRules("");
  ruler.disable(name);
  const others = new Set(ruler.getRules(""));
  ruler.enable(name);
  ruler.at(name, around(all.find((rule) => !others.has(rule))), { alt });
}

/** A table begins with its second line, so that has to be complete. */
function finishedTable(rule) {
  return (state, startLine, endLine, silent) => startLine + 1 !== state.env.openLine && rule(state, startLine, endLine, silent);
}

function finishedUnderline(rule) {
  return (state, startLine, endLine, silent) => rule(state, startLine, Math.min(endLine, state.env.openLine), silent);
}

function finishedDefinition(rule) {
  return (state, startLine, endLine, silent) => {
    if (startLine >= state.env.openLine) return false;
    const { lineMax } = state;
    state.lineMax = Math.min(lineMax, state.env.openLine);
    try {
      return rule(state, startLine, endLine, silent);
    } finally {
      state.lineMax = lineMax;
    }
  };
}

const MARK_ONLY = /^(?:[-+*_=]+|#{1,6}|\d{1,9}[.)]?|`{1,2}|~{1,2}|\$+|\\\[?)[ \t]*$/;

function unfinished(state, startLine, endLine, silent) {
  if (silent || startLine !== state.env.openLine || state.sCount[startLine] - state.blkIndent >= 4) return false;
  const line = state.src.slice(state.bMarks[startLine] + state.tShift[startLine], state.eMarks[startLine]);
  if (!MARK_ONLY.test(line)) return false;
  pushPlain(state, startLine, line);
  return true;
}

function tooDeep(state, startLine, endLine, silent) {
  if (silent || state.level < LEVELS_MAX) return false;
  pushPlain(state, startLine, state.getLines(startLine, startLine + 1, state.blkIndent, false));
  return true;
}

function pushPlain(state, line, content) {
  const token = state.push("plain", "", 0);
  token.content = content;
  token.map = [line, line + 1];
  state.line = line + 1;
}

/** Reads what stands in lines, and notes at each token the labels that were asked for in vain. */
function inline({ tokens, md, env }) {
  for (const token of tokens) {
    if (token.type !== "inline") continue;
    if (token.content.length > INLINE_MAX) {
      token.type = "plain_inline";
      continue;
    }
    env.asked = new Set();
    token.meta = { asked: env.asked };
    md.inline.parse(token.content, md, env, token.children);
  }
}

/** Removes the link of an address that stands last: without a space behind it, it may not be whole yet. */
function unfinishedAddress({ src, tokens, env }) {
  const last = tokens.findLastIndex(({ map }) => map);
  if (env.openLine === Infinity || /\s$/.test(src) || !["inline", "tr_open"].includes(tokens[last]?.type)) return;
  const { children } = tokens.findLast(({ type, content }) => type === "inline" && content !== "") ?? { children: [] };
  let isAddress = false;
  for (let at = children.length - 1; at >= 0; at -= 1) {
    const token = children[at];
    if (token.markup === "linkify") {
      isAddress = token.type === "link_close";
      token.type = "hidden";
    } else if (!isAddress && (token.type.endsWith("break") || (token.type === "text" && /\s/.test(token.content)))) {
      return;
    }
  }
}

// The tags that models write into Markdown although it is no HTML page: `<br>`, `<sub>`, `<sup>`, `<kbd>`, and `<details>` with its
// `<summary>`. They are tokens like any other mark. A tag with attributes, or without its end, stays text, as do all other tags.

const PAIRED = /^<(\/?)(sub|sup|kbd)>$/i;
const BREAK = /^<br ?\/?>$/i;
const DETAILS = /^<details>[ \t]*(?:<summary>(.*)<\/summary>)?[ \t]*$/i;
const SUMMARY = /^<summary>(.*)<\/summary>[ \t]*$/i;
const DETAILS_END = /^<\/details>[ \t]*$/i;

/** Has the parser know these tags. */
export function addTags(parser) {
  parser.block.ruler.before("html_block", "details", details, { alt: ["paragraph", "reference", "blockquote"] });
  parser.core.ruler.after("inline", "tags", ({ tokens }) => tokens.forEach(({ children }) => children && mark(children)));
}

/** Makes marks of the tags in a line: a break, and what has its end at the same depth. */
function mark(tokens) {
  const open = [];
  for (const token of tokens) {
    if (token.type.endsWith("_open")) open.push(token);
    else if (token.type.endsWith("_close")) {
      // A mark that was opened within another and not closed there has no end.
      while (open.at(-1)?.type === "html_inline") open.pop();
      open.pop();
    }
    if (token.type !== "html_inline") continue;
    if (BREAK.test(token.content)) Object.assign(token, { type: "hardbreak", content: "" });
    const found = PAIRED.exec(token.content);
    if (found === null) continue;
    const tag = found[2].toLowerCase();
    if (found[1] === "") open.push(Object.assign(token, { tag }));
    else if (open.at(-1)?.type === "html_inline" && open.at(-1).tag === tag) {
      const first = open.pop();
      Object.assign(first, { type: "tag_open", markup: first.content });
      Object.assign(token, { type: "tag_close", tag });
    }
  }
}

/** A block that is folded, up to its end or that of the text; without its end it is shown open. What is in it is Markdown. */
function details(state, startLine, endLine, silent) {
  if (startLine >= state.env.openLine || state.sCount[startLine] - state.blkIndent >= 4) return false;
  const line = (at) => state.src.slice(state.bMarks[at] + state.tShift[at], state.eMarks[at]);
  const first = DETAILS.exec(line(startLine));
  if (first === null) return false;
  if (silent) return true;
  const [isNamed, later] = [first[1] !== undefined, startLine + 1 < endLine ? SUMMARY.exec(line(startLine + 1)) : null];
  const begin = startLine + (isNamed || later === null ? 1 : 2);
  let [end, depth] = [begin, 1];
  for (; end < endLine; end += 1) {
    if (!state.isEmpty(end) && state.sCount[end] < state.blkIndent) break;
    if (DETAILS.test(line(end))) depth += 1;
    else if (DETAILS_END.test(line(end))) depth -= 1;
    if (depth === 0) break;
  }
  const isClosed = depth === 0 && end < state.env.openLine;
  const opened = state.push("details_open", "details", 1);
  opened.map = [startLine, end];
  opened.meta = { isClosed };
  const summary = isNamed ? first[1] : later?.[1];
  if (summary !== undefined) {
    state.push("summary_open", "summary", 1);
    const token = state.push("inline", "", 0);
    Object.assign(token, { content: summary.trim(), children: [], map: [startLine, begin] });
    state.push("summary_close", "summary", -1);
  }
  const { lineMax, parentType } = state;
  Object.assign(state, { lineMax: end, parentType: "details" });
  state.md.block.tokenize(state, begin, end);
  Object.assign(state, { lineMax, parentType, line: isClosed ? end + 1 : end });
  state.push("details_close", "details", -1);
  return true;
}

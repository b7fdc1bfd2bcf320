// Where an equation begins and ends: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`, as rules of the Markdown parser.
//
// A dollar sign is mostly money or a variable of a shell. It opens an equation only where no letter, digit or dollar sign
// stands before it and no space behind it, and the next one closes it only where no space stands before it and no letter or
// digit behind it. What reads like prose is none either.

const LENGTH_MAX = 4_000;
const DOLLAR = "$".charCodeAt(0);
const BACKSLASH = "\\".charCodeAt(0);

/** Has the parser know equations, where `env.math` says so. */
export function addMath(parser) {
  parser.block.ruler.before("fence", "math_block", mathBlock, { alt: ["paragraph", "reference", "blockquote", "list"] });
  parser.inline.ruler.before("escape", "math_inline", mathInline);
}

const LETTER_OR_DIGIT = /[\p{L}\p{N}]/u;

/**
 * Returns whether it reads like words or amounts: `5, not 5` and `5 or 6` are no equations, while `A = \pi r^2`, `x \in B` and
 * `2n` are.
 */
function isProse(source) {
  return !/[=\\^_{}<>+]/.test(source) && (/^\s*\d.*\s\S/s.test(source) || /(?:^|\s)\p{L}{3,}(?=[\s,.;:!?]|$)/u.test(source));
}

/** Returns whether a shell would read it as a variable with something behind it: `$HOME/bin:$`, `${A}$`. */
function isVariable(source) {
  return /^(?:[A-Z_][A-Z0-9_]+[/:]|\{\w+\})|[/:]$/.test(source);
}

/** Returns whether there is something to set: letters or digits, and no more than an equation would have. */
function isEquation(source) {
  return source.length <= LENGTH_MAX && LETTER_OR_DIGIT.test(source);
}

/** The equation at `start` of `text`, and where it ends; `null` if there is none. */
function equationAt(text, start, max) {
  for (const [open, close, display] of [["\\(", "\\)", false], ["\\[", "\\]", true], ["$$", "$$", true]]) {
    if (!text.startsWith(open, start)) continue;
    const end = text.slice(start + 2, Math.min(max, start + LENGTH_MAX)).indexOf(close);
    if (end < 0) return null;
    const source = text.slice(start + 2, start + 2 + end);
    // A bracket behind a backslash is mostly a bracket: `\[1\]`, `\[x\]`.
    if (!isEquation(source) || isProse(source) || (open === "\\[" && !/[=\\^_{}<>+\-*/]/.test(source))) return null;
    return { source, display, end: start + end + 4 };
  }
  if (text.charCodeAt(start) !== DOLLAR) return null;
  const before = text[start - 1] ?? " ";
  if (before === "$" || before === "\\" || LETTER_OR_DIGIT.test(before)) return null;
  let end = start + 1;
  const last = Math.min(max, start + LENGTH_MAX);
  while (end < last && text.charCodeAt(end) !== DOLLAR) end += text.charCodeAt(end) === BACKSLASH ? 2 : 1;
  if (end >= last) return null;
  const source = text.slice(start + 1, end);
  const after = text[end + 1] ?? " ";
  if (/^\s|\s$/.test(source) || after === "$" || LETTER_OR_DIGIT.test(after)) return null;
  return isEquation(source) && !isProse(source) && !isVariable(source) ? { source, display: false, end: end + 1 } : null;
}

function mathInline(state, silent) {
  if (!state.env.math) return false;
  const code = state.src.charCodeAt(state.pos);
  if (code !== DOLLAR && code !== BACKSLASH) return false;
  const found = equationAt(state.src, state.pos, state.posMax);
  if (found === null) return false;
  if (!silent) {
    const token = state.push("math", "math", 0);
    token.content = found.source;
    token.markup = state.src.slice(state.pos, found.end);
    token.meta = { display: found.display };
  }
  state.pos = found.end;
  return true;
}

const CLOSE = { "$$": "$$", "\\[": "\\]" };

/**
 * An equation of lines of its own, between lines that hold nothing but its marks. Nothing in it is Markdown, and it ends
 * at an empty line, so that what is read once stays true: one that is not closed by then is shown as it is.
 */
function mathBlock(state, startLine, endLine, silent) {
  if (!state.env.math || state.sCount[startLine] - state.blkIndent >= 4) return false;
  const line = (at) => state.src.slice(state.bMarks[at] + state.tShift[at], state.eMarks[at]).trimEnd();
  const close = CLOSE[line(startLine)];
  if (close === undefined) return false;
  if (silent) return true;
  let next = startLine + 1;
  let isClosed = false;
  while (!isClosed && next < endLine && !state.isEmpty(next) && state.sCount[next] >= state.blkIndent) {
    isClosed = line(next) === close;
    next += 1;
  }
  const source = isClosed ? state.getLines(startLine + 1, next - 1, state.blkIndent, false) : "";
  const token = state.push(isClosed && isEquation(source) ? "math" : "plain", "", 0);
  token.block = true;
  token.map = [startLine, next];
  token.markup = state.getLines(startLine, next, state.blkIndent, false);
  token.content = token.type === "math" ? source : token.markup;
  token.meta = { display: true };
  state.line = next;
  return true;
}

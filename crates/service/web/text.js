// Text cut to a length, never inside of what a person sees as one character. Pure.

const characters = new Intl.Segmenter(undefined, { granularity: "grapheme" });

/** Code units that one character may have on average before a text counts as longer than it looks: accents can be piled up without end. */
const UNITS_OF_CHARACTER = 25;

/** Returns as much of the beginning of a text as has at most so many UTF-16 code units, in whole characters. */
export function fitting(text, units) {
  if (text.length <= units) return text;
  // With the code point behind the cut, which may belong to the character before it; the rest is not looked at.
  const at = characters.segment(text.slice(0, units + 2)).containing(units).index;
  if (at > 0) return text.slice(0, at);
  // One character alone is longer than that: at least no half of a surrogate pair is left.
  return text.slice(0, text.codePointAt(units - 1) > 0xffff ? units - 1 : units);
}

/** Returns at most the first `count` characters of a text. */
export function beginning(text, count) {
  if (text.length <= count) return text;
  const bounded = fitting(text, count * UNITS_OF_CHARACTER);
  let before = 0;
  for (const { index } of characters.segment(bounded)) {
    if (before === count) return bounded.slice(0, index);
    before += 1;
  }
  return bounded;
}

/** Returns the text; where it has more than `count` characters, one less of them, and an ellipsis. */
export function shortened(text, count) {
  return beginning(text, count) === text ? text : `${beginning(text, count - 1)}…`;
}

/** Returns a piece of Markdown as plain words, for where it is quoted. */
export function withoutMarks(text) {
  return text
    .replace(/^\s*(?:#{1,6}\s+|>\s?|[-*+]\s+(?:\[[ xX]\]\s+)?|`{3,}\S*|~{3,}\S*)/gm, "")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/(\*\*|__|~~)(?=\S)(.+?)(?<=\S)\1/g, "$2")
    .replace(/(?<![\p{L}\p{N}*_])([*_])(?=\S)([^*_]+?)(?<=\S)\1(?![\p{L}\p{N}*_])/gu, "$2")
    .replace(/`+([^`]+)`+/g, "$1")
    .replace(/\s+/g, " ")
    .trim();
}

/** Returns the text in pieces of at most so many UTF-16 code units, each of whole characters. */
export function pieces(text, units) {
  const parts = [];
  for (let rest = text; rest !== ""; rest = rest.slice(parts.at(-1).length)) parts.push(fitting(rest, units));
  return parts;
}

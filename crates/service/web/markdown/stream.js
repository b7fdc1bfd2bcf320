// An answer as it comes, as blocks of tokens. What is final is read once; only what is not is read again.
//
// A block is final when another one has begun on a line that is complete: CommonMark never opens a closed block again. What
// can still change in it are links whose definition comes later; each block notes the labels it asked for in vain.

import { parse } from "./parser.js";

// Up to so many characters that are not final are read again with each piece. Beyond, only when they have grown by an eighth,
// so that a long list or table does not take the square of its length; what came since is shown as it is.
const FREELY = 32_768;
// The same where reading is but looking for the end: in a block of code.
const FREELY_IN_CODE = 1_048_576;
const GROWTH = 1 / 8;

export class MarkdownStream {
  #math;
  #notes;
  #text = "";
  #rest = "";
  #readLength = 0;
  #freely = FREELY;
  #known = Object.create(null);
  #defined = Object.create(null);
  #asking = new Map();
  #final = [];
  #open = [];

  /** `math` says whether there are equations, `notes` whether there are links to notes. */
  constructor({ math = false, notes = false } = {}) {
    this.#math = math;
    this.#notes = notes;
    /** Characters that the parser was given, in all. */
    this.charactersRead = 0;
  }

  /**
   * Takes the whole text so far, and whether it is done. Returns the blocks in order: `{ tokens, source, isFinal }`. A block
   * that did not change is the same object as before. `null` if the text is not the old one with more behind it.
   */
  show(text, isDone) {
    if (!text.startsWith(this.#text)) return null;
    this.#take(text.slice(this.#text.length));
    this.#text = text;
    const length = this.#rest.length;
    if (!isDone && length > this.#freely && length < this.#readLength * (1 + GROWTH)) {
      const source = this.#rest.slice(this.#readLength);
      return [...this.#final, ...this.#open, { tokens: [{ type: "plain", content: source }], source, isFinal: false }];
    }
    this.#read(isDone);
    return [...this.#final, ...this.#open];
  }

  /** Line ends become one character, also where a piece ends between the two of them. */
  #take(more) {
    const begin = this.#text.endsWith("\r") && more.startsWith("\n") ? 1 : 0;
    this.#rest += more.slice(begin).replace(/\r\n?/g, "\n");
  }

  #read(isDone) {
    const { tokens, defined, openLine } = this.#parse(this.#rest, { isOpen: !isDone, known: (label) => this.#known[label] });
    const blocks = split(tokens);
    const firstOpen = isDone ? blocks.length : Math.max(0, blocks.findLastIndex(({ line }) => line < openLine));
    const starts = lineStarts(this.#rest, blocks.map(({ line }) => line));
    const make = ({ tokens }, at) => ({ tokens, source: this.#rest.slice(starts[at], starts[at + 1]), isFinal: at < firstOpen });
    const made = blocks.map(make);
    const final = made.slice(0, firstOpen);
    this.#open = made.slice(firstOpen);
    for (const block of final) this.#ask(block, this.#final.push(block) - 1);
    this.#resolve(defined);
    for (const label of definitions(final)) this.#known[label] ??= defined[label];
    this.#defined = defined;
    if (firstOpen > 0) this.#rest = this.#rest.slice(starts[firstOpen]);
    this.#readLength = this.#rest.length;
    const last = this.#open.at(-1)?.tokens.at(-1);
    this.#freely = ["fence", "code_block", "html_block"].includes(last?.type) ? FREELY_IN_CODE : FREELY;
  }

  #parse(source, options) {
    this.charactersRead += source.length;
    return parse(source, { ...options, math: this.#math, notes: this.#notes });
  }

  #ask({ tokens }, place) {
    for (const { meta } of tokens) {
      for (const label of meta?.asked ?? []) {
        if (!this.#asking.has(label)) this.#asking.set(label, new Set());
        this.#asking.get(label).add(place);
      }
    }
  }

  /** Reads final blocks again whose definitions have come, gone or changed. */
  #resolve(defined) {
    const changed = new Set();
    for (const label of new Set([...Object.keys(defined), ...Object.keys(this.#defined)])) {
      const [before, after] = [this.#known[label] ?? this.#defined[label], this.#known[label] ?? defined[label]];
      if (before?.href === after?.href && before?.title === after?.title) continue;
      for (const place of this.#asking.get(label) ?? []) changed.add(place);
    }
    for (const place of changed) {
      const { source } = this.#final[place];
      const { tokens } = this.#parse(source, { isOpen: false, known: (label) => this.#known[label] ?? defined[label] });
      this.#final[place] = { tokens, source, isFinal: true };
      this.#ask(this.#final[place], place);
    }
  }
}

/** The labels that blocks define. */
function definitions(blocks) {
  return blocks.flatMap(({ tokens }) => tokens).filter(({ type }) => type === "reference_definition").map(({ meta }) => meta.label);
}

/** The tokens of each block, and the line on which it begins. */
function split(tokens) {
  const blocks = [];
  for (const token of tokens) {
    if (token.level === 0 && token.nesting >= 0 && token.map) blocks.push({ line: token.map[0], tokens: [] });
    blocks.at(-1).tokens.push(token);
  }
  return blocks;
}

/** Returns the offsets of these lines in `text`; the first block has what is before it, and the end of the text comes last. */
function lineStarts(text, lines) {
  const starts = [];
  let [line, at] = [0, 0];
  for (const wanted of lines) {
    for (; line < wanted; line += 1) at = text.indexOf("\n", at) + 1;
    starts.push(at);
  }
  if (starts.length > 0) starts[0] = 0;
  return [...starts, text.length];
}

// The text of a message, while it is streamed.

import { nodes, words } from "../markdown/nodes.js";
import { MarkdownStream } from "../markdown/stream.js";
import { math } from "../settings.js";
import { state } from "../state.js";
import { Component, h } from "../vendor/htm-preact-standalone.module.js";
import { memo, say, useEffect, useMemo, useRef } from "./base.js";

// Blocks that are compared with what is drawn, and drawn, together.
const GROUP = 64;

export const Markdown = memo(function Markdown({ text, done, heard }) {
  const reader = useRef(null);
  const blocks = useMemo(() => {
    reader.current ??= new Reader();
    return reader.current.show(text, done);
  }, [text, done]);
  useEffect(() => {
    for (const block of reader.current.finished(blocks)) if (heard) say(words(block));
  }, [blocks]);
  const groups = [];
  for (let at = 0; at < blocks.length; at += GROUP) groups.push(h(Group, { blocks: blocks.slice(at, at + GROUP) }));
  return h("div", { class: "markdown" }, groups);
});

class Group extends Component {
  shouldComponentUpdate({ blocks }) {
    return blocks.length !== this.props.blocks.length || blocks.some((block, at) => block !== this.props.blocks[at]);
  }

  render({ blocks }) {
    return blocks.map((block) => h(Block, { block }));
  }
}

const Block = memo(({ block }) => nodes(block));

/** Parses the text, from the start if it is no continuation of the previous one. */
class Reader {
  #stream = null;
  #isDone = false;
  #finished = 0;

  show(text, isDone) {
    if (this.#isDone && !isDone) this.#stream = null;
    this.#isDone = isDone;
    try {
      const blocks = this.#stream?.show(text, isDone);
      if (blocks) return blocks;
      this.#stream = new MarkdownStream({ math: math.isOn(), notes: state.me?.vault != null });
      this.#finished = 0;
      return this.#stream.show(text, isDone);
    } catch {
      // What cannot be read is shown as it is, instead of not at all.
      this.#stream = null;
      return [{ tokens: [{ type: "plain", content: text }], source: text, isFinal: isDone }];
    }
  }

  /** The blocks that are final and were not before. */
  finished(blocks) {
    const begin = this.#finished;
    while (blocks[this.#finished]?.isFinal) this.#finished += 1;
    return blocks.slice(begin, this.#finished);
  }
}

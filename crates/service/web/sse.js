// Server-sent events out of a fetch response: `EventSource` can neither POST nor say which event was the last.

import { Problem } from "./api.js";
import { t } from "./words.js";

/** Takes text as it comes, cut anywhere, and gives whole events `{ id, data }`. Knows no socket. */
export class Reader {
  #rest = "";
  #data = [];
  #id;

  push(text) {
    const events = [];
    this.#rest += text;
    // A line ends with CR LF, LF or CR; a CR at the end may be half of a CR LF.
    for (let end; (end = /\r\n|\n|\r(?!$)/.exec(this.#rest)); ) {
      const line = this.#rest.slice(0, end.index);
      this.#rest = this.#rest.slice(end.index + end[0].length);
      this.#line(line, events);
    }
    return events;
  }

  #line(line, events) {
    if (line === "") {
      if (this.#data.length) events.push({ id: this.#id, data: this.#data.join("\n") });
      this.#data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return; // a comment, to keep the connection alive
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") this.#data.push(value);
    if (field === "id") this.#id = value;
  }
}

/** The events of a response, until it ends or breaks. `heard` is called when anything comes, comments too. */
export async function* eventsOf(response, heard = () => {}) {
  const reader = new Reader();
  const decoder = new TextDecoder();
  const stream = response.body.getReader();
  try {
    for (;;) {
      const { done, value } = await stream.read().catch((error) => {
        if (error.name === "AbortError") throw error;
        throw new Problem({ code: "offline", title: t("problem.title.offline"), detail: t("problem.cut") });
      });
      if (done) return;
      heard();
      yield* reader.push(decoder.decode(value, { stream: true }));
    }
  } finally {
    stream.cancel().catch(() => {});
  }
}

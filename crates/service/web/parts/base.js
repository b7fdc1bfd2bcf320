// What all parts are made with.

import { Component, h, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/htm-preact-standalone.module.js";

export { h, html, useEffect, useLayoutEffect, useMemo, useRef, useState };

/** A part that is drawn again only when one of its properties is another one. */
export function memo(part) {
  return class extends Component {
    shouldComponentUpdate(next) {
      const keys = new Set([...Object.keys(this.props), ...Object.keys(next)]);
      return [...keys].some((key) => this.props[key] !== next[key]);
    }
    render(props) {
      return h(part, props);
    }
  };
}

/** Classes out of names and conditions: `classes("a", isB && "b")`. */
export function classes(...names) {
  return names.filter(Boolean).join(" ");
}

/** Words of which those between backticks are typed as they are: each in a `tag`. */
export function typed(words, tag = "code") {
  return words.split("`").map((piece, at) => (at % 2 === 1 ? h(tag, null, piece) : piece));
}

/** The time, updated every `ms` milliseconds while `isOn`. */
export function useNow(ms, isOn = true) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isOn) return undefined;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [ms, isOn]);
  return now;
}

/** Gives a reference for what came to be seen by a click: it is brought into sight. */
export function useInSight(isOpen) {
  const element = useRef(null);
  useEffect(() => {
    if (isOpen) element.current?.scrollIntoView({ block: "nearest" });
  }, [isOpen]);
  return element;
}

/** Returns whether a key belongs to an input method. Safari sends Enter with this code after it has ended the composition. */
export const isComposing = (event) => event.isComposing || event.keyCode === 229;

/** Puts text on the clipboard; gives whether it did. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Not served securely: the old way.
    const area = document.createElement("textarea");
    area.value = text;
    area.className = "only-heard";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

/** Announces a text to screen readers. */
export function say(text) {
  const log = document.getElementById("said");
  const words = text.trim();
  if (!log || words === "") return;
  const line = document.createElement("p");
  line.textContent = words;
  log.append(line);
  // Heard by then; who reads the page finds it in the conversation, once.
  setTimeout(() => line.remove(), 10_000);
}

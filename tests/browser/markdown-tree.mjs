// Comparable trees of what the page draws for an answer and of the HTML that the specification expects.

/** Defines `trees.shown(texts)` and `trees.expected(html)` in the page. Runs in the browser. */
export async function install() {
  const { h, render } = await import("/web/vendor/htm-preact-standalone.module.js");
  const { Markdown } = await import("/web/parts/markdown.js");

  const BLOCKS = new Set(["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "table", "thead", "tbody", "tr", "th", "td", "plain"]);

  const target = (address) => {
    try {
      const url = new URL(address);
      return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
    } catch {
      return null;
    }
  };

  /** Normalises a list of nodes: drops white space between and at the ends of blocks, and joins adjacent texts. */
  const tidy = (nodes) => {
    const joined = [];
    for (const node of nodes) {
      if (typeof node === "string" && typeof joined.at(-1) === "string") joined.push(joined.pop() + node);
      else joined.push(node);
    }
    const isBlock = (node) => node === undefined || (typeof node === "object" && BLOCKS.has(node.tag));
    return joined
      .map((node, at) => {
        if (typeof node !== "string") return node;
        let text = node.replace(/\s+/g, " ");
        const [before, after] = [joined[at - 1], joined[at + 1]];
        if (isBlock(before) || before?.tag === "br") text = text.trimStart();
        if (isBlock(after) || after?.tag === "br") text = text.trimEnd();
        return text;
      })
      .filter((node) => node !== "");
  };
  const inTidy = (nodes, isInBlock) => {
    const tidied = tidy(nodes);
    // Inside inline elements, white space at the ends is significant.
    return isInBlock ? tidied : nodes.length === 1 && typeof nodes[0] === "string" ? [nodes[0].replace(/\s+/g, " ")] : tidied;
  };
  const node = (tag, attributes, children) => ({ tag, ...Object.fromEntries(Object.entries(attributes).filter(([, value]) => value)), children: inTidy(children, BLOCKS.has(tag)) });

  const children = (element, convert) => [...element.childNodes].flatMap(convert);

  /** Converts the page's own nodes to the terms of the specification. */
  const ours = (found) => {
    if (found.nodeType === Node.TEXT_NODE) return [found.data];
    const tag = found.localName;
    const inner = () => children(found, ours);
    const title = (found.title ?? "").split("\n").slice(0, -1).join("\n");
    if (tag === "figure") {
      const [head, pre] = found.children;
      const language = head.querySelector("span").textContent;
      return [{ tag: "pre", language: language, text: pre.textContent }];
    }
    if (found.className === "md-table") return inner();
    if (found.className === "md-plain") return [tag === "p" ? { tag: "plain", text: found.textContent.trim() } : found.textContent];
    if (found.className === "md-check is-done") return [{ tag: "task", done: true }];
    if (found.className === "md-check") return [{ tag: "task", done: false }];
    if (found.className.startsWith("md-math")) return [{ tag: "math", text: found.textContent }];
    if (tag === "span") return [node("no-link", { title }, inner())];
    if (tag === "a") return [node("a", { href: found.href, title }, inner())];
    if (tag === "h3") return [node(found.className.slice(3), {}, inner())];
    if (tag === "code") return [{ tag, text: found.textContent }];
    if (tag === "ol") return [node(tag, { start: found.getAttribute("start") }, inner())];
    if (tag === "th" || tag === "td") return [node(tag, { align: found.className.slice(3) }, inner())];
    return [node(tag, {}, inner())];
  };

  /**
   * Converts an HTML node, with the page's three deviations: raw HTML becomes text, images become links, and unsafe
   * schemes are dropped.
   */
  const theirs = (found) => {
    if (found.nodeType === Node.TEXT_NODE) return [found.data];
    const tag = found.localName;
    const inner = () => children(found, theirs);
    const title = found.getAttribute("title");
    if (tag === "raw-text") return [found.textContent];
    if (tag === "raw-block") return [{ tag: "plain", text: found.textContent.trim() }];
    if (tag === "pre") return [{ tag, language: (/language-(.*)/s.exec(found.querySelector("code").className)?.[1] ?? "").slice(0, 24), text: found.textContent }];
    if (tag === "img") {
      const address = target(found.getAttribute("src"));
      const text = ["🖼 ", found.alt || address || found.getAttribute("src")].join("");
      if (found.closest("a")) return [node("no-link", {}, [text])];
      return address === null ? [node("no-link", { title }, [text])] : [node("a", { href: address, title }, [text])];
    }
    if (tag === "a") {
      const address = target(found.getAttribute("href"));
      return [address === null ? node("no-link", { title }, inner()) : node("a", { href: address, title }, inner())];
    }
    if (tag === "input") return [{ tag: "task", done: found.hasAttribute("checked") }];
    if (tag === "del") return [node("s", {}, inner())];
    if (tag === "code") return [{ tag, text: found.textContent }];
    if (tag === "ol") return [node(tag, { start: found.getAttribute("start") }, inner())];
    if (tag === "th" || tag === "td") return [node(tag, { align: found.getAttribute("align") }, inner())];
    return [node(tag, {}, inner())];
  };

  /** Returns the words that occur once, which have a number. */
  const letters = (text) => text.match(/\p{L}{4,}\d+/gu) ?? [];

  /** Returns the text of nodes, with white space between blocks. */
  const textOf = (root) => {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode.data);
    return texts.join(" ");
  };

  /** Removes links to bare addresses, which the specification does not have. */
  const unlinked = (nodes) =>
    tidy(nodes.flatMap((node) => {
      if (typeof node === "string" || !node.children) return [node];
      const children = unlinked(node.children);
      return node.tag === "a" && children.length === 1 && typeof children[0] === "string" && node.href.replace(/^mailto:|\/$/g, "") === children[0].replace(/\/$/, "") ? children : [{ ...node, children }];
    }));

  globalThis.trees = {
    unlinked,
    expected: (html) => tidy(children(new DOMParser().parseFromString(`<body>${html}`, "text/html").body, theirs)),
    /** Returns the tree of a text that arrives in pieces ending at `cuts` (empty: whole). `isMath` is the user's setting. */
    shown(text, cuts = [], isMath = false) {
      localStorage.setItem("adjutant.math", JSON.stringify(isMath));
      const root = document.createElement("div");
      for (const cut of cuts) render(h(Markdown, { text: text.slice(0, cut), done: false }), root);
      render(h(Markdown, { text, done: true }), root);
      const tree = tidy(children(root.firstChild, ours));
      render(null, root);
      localStorage.removeItem("adjutant.math");
      return tree;
    },
    /**
     * Checks all prefixes of a text. Returns words of the whole that a prefix has lost, and links to addresses not in
     * `addresses`.
     */
    prefixes(text, addresses) {
      const root = document.createElement("div");
      const whole = document.createElement("div");
      render(h(Markdown, { text, done: true }), whole);
      const shownAtEnd = new Set(letters(textOf(whole)));
      // A link label occurs twice: where it is used and where it is defined.
      const written = letters(text);
      const kept = new Set(written.filter((word) => shownAtEnd.has(word) && written.indexOf(word) === written.lastIndexOf(word)));
      const wrong = [];
      let first = null;
      for (let end = 1; end <= text.length; end += 1) {
        const beginning = text.slice(0, end);
        render(h(Markdown, { text: beginning, done: false }), root);
        const shown = textOf(root);
        const has = new Set(letters(shown));
        const arrived = letters(beginning);
        const rest = /^[\p{L}\p{N}]*/u.exec(text.slice(end))[0];
        // The last word of a prefix may be incomplete.
        const cut = /[\p{L}\p{N}]+$/u.exec(beginning)?.[0] ?? "";
        if (cut !== "" && arrived.at(-1) === cut) arrived.pop();
        for (const word of arrived) if (kept.has(word) && !has.has(word)) wrong.push(`${end}: without ${word}`);
        if (kept.has(cut + rest) && !shown.includes(cut)) wrong.push(`${end}: without ${cut}`);
        for (const link of root.querySelectorAll("a")) {
          if (!link.hasAttribute("href") || !addresses.includes(link.href)) wrong.push(`${end}: a link to ${link.getAttribute("href")}`);
        }
        if (end === Math.floor(text.length / 2)) first = root.firstChild.firstChild;
      }
      render(h(Markdown, { text, done: true }), root);
      if (first !== null && first !== root.firstChild.firstChild) wrong.push("what was final was made anew");
      const same = JSON.stringify(children(root.firstChild, ours)) === JSON.stringify(children(whole.firstChild, ours));
      if (!same) wrong.push("the end is not what the whole is");
      render(null, root);
      render(null, whole);
      return wrong;
    },
  };
}

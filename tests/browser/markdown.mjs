// Markdown of answers: the examples of the specification, GitHub's extensions, equations, streamed pieces, and hostile
// texts.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { check, last, lines, open, say, serve, settled, violations } from "./harness.mjs";
import { HOSTILE, NESTED, PATTERNS } from "./hostile-text.mjs";
import { answer, jumble } from "./markdown-answers.mjs";
import { ADDRESSES, EQUATIONS, EVERYTHING, GITHUB, NODES, TASKS } from "./markdown-fixtures.mjs";
import { install } from "./markdown-tree.mjs";

const require = createRequire(import.meta.url);
const commonmark = require("commonmark");
const github = require("cmark-gfm-js");
const { tests: EXAMPLES } = require("commonmark-spec");
const { default: MarkdownIt } = await import("markdown-it");

const isLong = process.env.ADJUTANT_TEST_SIZE === "long";
const ANSWERS = isLong ? 200 : 20;
const JUMBLES = isLong ? 10_000 : 1_000;

/** The specification writes tabs as arrows. */
const spec = EXAMPLES.map(({ number, markdown, html }) => ({ number, markdown: markdown.replaceAll("→", "\t"), html: html.replaceAll("→", "\t") }));

/** Returns the HTML of the reference implementation, with raw HTML marked as such. */
function reference(markdown, isMarked) {
  const renderer = new commonmark.HtmlRenderer();
  if (isMarked) {
    const mark = (tag) => function raw(node) {
      this.lit(`<${tag}>${node.literal.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")}</${tag}>`);
    };
    renderer.html_inline = mark("raw-text");
    renderer.html_block = mark("raw-block");
  }
  return renderer.render(new commonmark.Parser().parse(markdown));
}

/** Examples in which a bare address is no link, as opposed to GitHub's extension. Everything else in them is compared. */
const BARE = [602, 608, 611, 612];

/** Returns the ends of pieces of `size` characters. If `size` is 0, their sizes are pseudo-random, up to 12. */
function cuts(text, size) {
  const ends = [];
  for (let at = size || 5, next = 17; at < text.length; at += size || (next % 12) + 1) {
    ends.push(at);
    next = (next * 31 + 7) % 1_009;
  }
  return ends;
}

const SIZES = [1, 3, 7, 0];

export async function markdown(browser) {
  const service = await serve({ script: lines({ text: EVERYTHING, repeat: true }) });
  await looks(browser, service);
  const page = await open(browser, service);
  await page.evaluate(install);
  try {
    await specification(page);
    await additions(page);
    await streams(page);
    await harmless(page, service);
    await check("markdown: nothing broken", () => assert.deepEqual(page.broken, []));
  } finally {
    await page.close();
    await service.stop();
  }
}

/** Checks an answer with all elements, as a user sees it. */
async function looks(browser, service) {
  for (const [theme, size] of [["light", { width: 1280, height: 800 }], ["dark", { width: 1280, height: 800 }], ["light", { width: 320, height: 700 }], ["dark", { width: 320, height: 700 }]]) {
    const page = await open(browser, service, { theme, size });
    await check(
      `markdown: ${theme}, ${size.width} px: axe-core finds nothing, colours of code included, and only code, tables and equations scroll`,
      async () => {
        await page.fill("#composer", "everything");
        await page.getByRole("button", { name: "Send", exact: true }).click();
        await settled(page, 1);
        await page.waitForFunction(() => document.querySelectorAll("math").length === 2 && document.querySelectorAll(".code").length - 1 === new Set([...document.querySelectorAll(".code [class^=hl-]")].map((node) => node.closest(".code"))).size);
        assert.deepEqual(await violations(page), []);
        const wide = await page.evaluate(() => {
          const answer = document.querySelector(".markdown");
          const edge = answer.getBoundingClientRect().right + 1;
          const scrolls = ".code pre, .md-table, .md-math.is-display";
          return [...answer.querySelectorAll("*")].filter((node) => node.getBoundingClientRect().right > edge && !node.parentElement.closest(scrolls)).map((node) => node.outerHTML.slice(0, 80));
        });
        assert.deepEqual(wide, []);
        assert.equal(await page.evaluate(() => [document.documentElement, document.querySelector(".scroll")].some((box) => box.scrollWidth > box.clientWidth)), false);
        assert.deepEqual(page.broken, []);
      },
      page,
    );
    await page.close();
  }

  const page = await open(browser, service);
  await check("markdown: the key of a block copies it by keyboard, and says so", async () => {
    await say(page, "everything");
    await settled(page, 1);
    const code = last(page).locator(".code", { hasText: "no language" });
    const key = code.getByRole("button", { name: "Copy code" });
    await key.focus();
    await page.keyboard.press("Enter");
    await code.getByRole("button", { name: "Copied" }).waitFor();
    await page.locator("#said", { hasText: "Copied" }).waitFor({ state: "attached" });
    await key.waitFor();
    // Pages have no permission to read the clipboard here, so the check pastes it.
    await page.locator("#composer").focus();
    await page.keyboard.press("ControlOrMeta+v");
    assert.equal(await page.inputValue("#composer"), "no language");
  }, page);
  await page.close();
}

async function specification(page) {
  await check("markdown: the parser gives the HTML of 652 of 652 examples of CommonMark 0.31.2", () => {
    assert.equal(spec.length, 652);
    const parser = new MarkdownIt("commonmark");
    // The reference library gives an empty quotation no line of its own.
    const tidy = (html) => html.replaceAll("<blockquote></blockquote>", "<blockquote>\n</blockquote>");
    assert.deepEqual(spec.filter(({ markdown, html }) => tidy(parser.render(markdown)) !== html).map(({ number }) => number), []);
  });

  await check("markdown: the page makes the tree of 652 of 652, whole and in pieces, with equations and without", async () => {
    // Checks that the reference implementation itself produces the expected HTML.
    assert.deepEqual(spec.filter(({ markdown, html }) => reference(markdown, false) !== html).map(({ number }) => number), []);
    const cases = spec.map(({ number, markdown }) => ({ number, markdown, html: reference(markdown, true), ways: [[], ...SIZES.map((size) => cuts(markdown, size))], hasBare: BARE.includes(number) }));
    const wrong = await page.evaluate(
      (cases) =>
        cases.flatMap(({ number, markdown, html, ways, hasBare }) => {
          const compared = (tree) => JSON.stringify(hasBare ? trees.unlinked(tree) : tree);
          const expected = compared(trees.expected(html));
          return [false, true].flatMap((isMath) =>
            ways.map((way) => compared(trees.shown(markdown, way, isMath))).filter((shown) => shown !== expected).map((shown) => `${number}: ${shown} and not ${expected}`),
          );
        }),
      cases,
    );
    assert.deepEqual(wrong.slice(0, 8), [], `${wrong.length} are other trees`);
  });
}

async function additions(page) {
  const shown = (text, size, isMath = false) => page.evaluate(([text, ends, isMath]) => trees.shown(text, ends, isMath), [text, size === null ? [] : cuts(text, size), isMath]);
  const found = (tree, tag) => (Array.isArray(tree) ? tree : tree.children ?? []).flatMap((node) => (typeof node === "string" ? [] : [...(node.tag === tag ? [node] : []), ...found(node, tag)]));
  const each = async (cases, work) => {
    for (const [text, wanted] of cases) for (const size of [null, ...SIZES]) assert.deepEqual(await work(text, size), wanted, `${JSON.stringify(text)} by ${size}`);
  };

  await check("markdown: tables and strikethrough are what GitHub's program makes of them", async () => {
    for (const text of GITHUB) {
      const expected = await page.evaluate((html) => trees.expected(html), github.convert(text).replace(/style="text-align: (\w+)"/g, 'align="$1"'));
      for (const size of [null, ...SIZES]) assert.deepEqual(await shown(text, size), expected, `${JSON.stringify(text)} by ${size}`);
    }
  });

  await check("markdown: task lists", () =>
    each(TASKS, async (text, size) => found(await shown(text, size), "li").map(({ children }) => [children[0], children[0]?.children?.[0]].find((node) => node?.tag === "task")?.done ?? null)));

  await check("markdown: bare addresses, and what belongs to them", () => each(ADDRESSES, async (text, size) => found(await shown(text, size), "a").map(({ href }) => href)));

  await check("markdown: equations, and what is none", async () => {
    const sources = async (text, size) => found(await shown(text, size, true), "math").map((node) => node.text.replace(/^(?:\$\$|\$|\\\(|\\\[)\s*|\s*(?:\$\$|\$|\\\)|\\\])$/g, "").replace(/\n {2}/g, "\n"));
    await each(EQUATIONS, sources);
    for (const [text] of EQUATIONS) assert.deepEqual(found(await shown(text, null, false), "math"), []);
  });

  await check("markdown: the page's own nodes", async () => {
    for (const [text, wanted] of NODES) {
      const { html } = await drawn(page, text);
      assert.ok(html.includes(wanted), `${JSON.stringify(text)} became ${html}, without ${wanted}`);
    }
  });

  await check("markdown: six tags without attributes are marks, whole and in pieces; all others are text", async () => {
    const [p, text] = [(...children) => [{ tag: "p", children }], (words) => [{ tag: "p", children: [words] }]];
    const mark = (tag, ...children) => ({ tag, children });
    await each([
      ["H<sub>2</sub>O and x<sup>*n*</sup>", p("H", mark("sub", "2"), "O and x", mark("sup", mark("em", "n")))],
      ["<KBD>Ctrl</KBD>+<kbd>C</kbd>", p(mark("kbd", "Ctrl"), "+", mark("kbd", "C"))],
      ["a<br>b<br/>c<br />d", p("a", mark("br"), "b", mark("br"), "c", mark("br"), "d")],
      ["a<sub>b **c</sub> d**", p("a<sub>b ", mark("strong", "c</sub> d"))],
      ["x<sub>y", text("x<sub>y")],
      ["x</sup>y", text("x</sup>y")],
      ['x<sub onclick="a()">y</sub>', text('x<sub onclick="a()">y</sub>')],
      ["a<b>b</b><img src=x>", text("a<b>b</b><img src=x>")],
      ["`<br>` <script>x</script>", p(mark("code"), " <script>x</script>")],
    ], async (source, size) => {
      const bare = ({ tag, children }) => ({ tag, ...(children && tag !== "br" && tag !== "code" ? { children: children.map((child) => (typeof child === "string" ? child : bare(child))) } : tag === "br" || tag === "code" ? { children: [] } : {}) });
      return (await shown(source, size)).map(bare);
    });
    const cell = await drawn(page, "| a | b |\n|---|---|\n| 1 | x<br>y |\n");
    assert.match(cell.html, /<td[^>]*>x<br>y<\/td>/);
  });

  await check("markdown: a folded block has Markdown in it, is open as long as it has no end, and may hold another", async () => {
    const text = "before\n\n<details>\n<summary>More **here**</summary>\n\n- one\n- two\n\n<details><summary>In it</summary>\n\nThree\n\n</details>\n\n</details>\n\nafter";
    const whole = JSON.stringify(await shown(text, null));
    for (const size of SIZES) assert.equal(JSON.stringify(await shown(text, size)), whole, `by ${size}`);
    const { html } = await drawn(page, text);
    assert.match(html, /<details class="md-details"><summary dir="auto">More <strong>here<\/strong><\/summary><ul>.*<details class="md-details"><summary dir="auto">In it<\/summary><p dir="auto">Three<\/p><\/details><\/details><p dir="auto">after<\/p>/s);
    assert.match((await drawn(page, "<details>\n<summary>A</summary>\n\nb\n", null, false)).html, /<details class="md-details" open/);
    assert.ok(!(await drawn(page, '<details open onclick="a()">\n\nb\n\n</details>\n')).html.includes("<details"));
  });

  await check("markdown: an equation becomes MathML; what cannot be read stays as it was written", async () => {
    const { html } = await drawn(page, "$\\frac{a}{b}$ $\\nosuch{x}$ $\\href{https://evil.example/}{y}$ $\\includegraphics{x1}$ $\\def\\a{\\a\\a}\\a$", "math");
    assert.match(html, /<mfrac[^>]*>.*<mi>a<\/mi>/s);
    for (const source of ["\\nosuch{x}", "\\href{https://evil.example/}{y}", "\\includegraphics{x1}", "\\def\\a{\\a\\a}\\a"]) assert.ok(html.includes(`$${source}$`), `${source} in ${html}`);
    assert.ok(!/href=|src=/.test(html));
  });

  await check("markdown: code is coloured once it is complete, with its text as it was, and no library before", async () => {
    const asked = () => page.asked.filter((url) => url.endsWith("/highlight.min.js")).length;
    assert.equal(asked(), 0);
    const code = "fn main() { let a = \"<b>\"; } // end\n";
    const open = await drawn(page, `\`\`\`rust\n${code}`, null, false);
    assert.ok(!open.html.includes("hl-"));
    assert.equal(asked(), 0);
    const { html, text } = await drawn(page, `\`\`\`rust\n${code}\`\`\`\n`, ".hl-keyword");
    assert.equal(text.replace(/\s+/g, " "), `rustWrap linesSaveCopy${code}`.replace(/\s+/g, " "));
    assert.match(html, /<span class="hl-string">"&lt;b&gt;"<\/span>/);
    assert.equal(asked(), 1);
    assert.ok(!(await drawn(page, "```no-such-language\nfn main() {}\n```\n")).html.includes("hl-"));
  });

  await check("markdown: finished blocks are said, each once", async () => {
    const streamed = await page.evaluate(async () => {
      const { h, render } = await import("/web/vendor/htm-preact-standalone.module.js");
      const { Markdown } = await import("/web/parts/markdown.js");
      const root = document.createElement("div");
      const log = document.getElementById("said");
      log.replaceChildren();
      const text = "one\n\ntwo **strong**\n\n- a\n- b\n\nend";
      const next = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      for (let end = 1; end <= text.length; end += 1) {
        render(h(Markdown, { text: text.slice(0, end), done: end === text.length, heard: true }), root);
        await next();
      }
      return [...log.children].map((line) => line.textContent);
    });
    assert.deepEqual(streamed, ["one", "two strong", "a\nb", "end"]);
  });
}

/** Draws a text, and returns its HTML, text and depth once `selector` matches. */
const drawn = (page, text, selector = null, isDone = true) =>
  page.evaluate(
    async ([text, selector, isDone]) => {
      const { h, render } = await import("/web/vendor/htm-preact-standalone.module.js");
      const { Markdown } = await import("/web/parts/markdown.js");
      const root = document.createElement("div");
      document.body.append(root);
      render(h(Markdown, { text, done: isDone }), root);
      while (selector && !root.querySelector(selector)) await new Promise((done) => setTimeout(done, 5));
      let depth = 0;
      for (let node = root; node; node = [...node.children].at(-1)) depth += 1;
      const result = { html: root.firstChild.innerHTML, text: root.textContent, depth };
      render(null, root);
      root.remove();
      return result;
    },
    [text, selector, isDone],
  );

async function streams(page) {
  await check(`markdown: at every prefix of ${ANSWERS} answers no link is dead and no word is lost, and the end is the whole`, async () => {
    for (let seed = 1; seed <= ANSWERS; seed += 1) {
      const { text, addresses } = answer(seed);
      const wrong = await page.evaluate(([text, addresses]) => trees.prefixes(text, addresses), [text, addresses]);
      assert.deepEqual(wrong.slice(0, 5), [], `answer ${seed}: ${JSON.stringify(text)}`);
    }
  });

  await check("markdown: in pieces of any size the answers become the same", async () => {
    for (let seed = 1; seed <= ANSWERS; seed += 1) {
      const { text } = answer(seed);
      const crlf = text.replaceAll("\n", "\r\n");
      const [whole, ...others] = await page.evaluate(
        ([text, crlf, ways, other]) => [trees.shown(text, [], true), ...ways.map((way) => trees.shown(text, way, true)), ...other.map((way) => trees.shown(crlf, way, true))],
        [text, crlf, SIZES.map((size) => cuts(text, size)), SIZES.map((size) => cuts(crlf, size))],
      );
      for (const tree of others) assert.deepEqual(tree, whole, `answer ${seed}`);
    }
  });

  await check(`markdown: ${JUMBLES} jumbles of marks become the same, given whole and by single characters`, async () => {
    const texts = Array.from({ length: JUMBLES }, (_, seed) => jumble(seed));
    const wrong = await page.evaluate(async (texts) => {
      const { MarkdownStream } = await import("/web/markdown/stream.js");
      const plain = (tokens) => tokens.map(({ type, tag, content, hidden, attrs, children }) => [type, tag, content, hidden, attrs, plain(children ?? [])]);
      const tokens = (blocks) => JSON.stringify(blocks.map(({ tokens }) => plain(tokens)));
      return texts.filter((text) => {
        const stream = new MarkdownStream({ math: true });
        for (let end = 1; end < text.length; end += 1) stream.show(text.slice(0, end), false);
        return tokens(stream.show(text, true)) !== tokens(new MarkdownStream({ math: true }).show(text, true));
      });
    }, texts);
    assert.deepEqual(wrong, []);
  });

  await check("markdown: twice the length is read about twice as much, not four times", async () => {
    const read = await page.evaluate(async () => {
      const { MarkdownStream } = await import("/web/markdown/stream.js");
      const texts = {
        paragraphs: (count) => "Some **words** of a paragraph.\n\n".repeat(count),
        list: (count) => "- an item of one list\n".repeat(count),
        code: (count) => `\`\`\`\n${"let a = 1; // and so on\n".repeat(count)}`,
        line: (count) => "words without an end ".repeat(count),
        table: (count) => `| a | b |\n|---|---|\n${"| 1 | 2 |\n".repeat(count)}`,
        links: (count) => `${"[a] [b]\n\n".repeat(count)}${Array.from({ length: count / 4 }, (_, at) => `[l${at}]: /x\n`).join("")}`,
      };
      const measured = (text) => {
        const stream = new MarkdownStream();
        const piece = Math.ceil(text.length / 400);
        for (let end = piece; end < text.length; end += piece) stream.show(text.slice(0, end), false);
        stream.show(text, true);
        return stream.charactersRead;
      };
      return Object.entries(texts).map(([name, make]) => [name, measured(make(8_000)), measured(make(16_000)), make(16_000).length]);
    });
    // Above the size that is always parsed again, parsing after each growth by an eighth reads 9 times the length in
    // total; below it, there are 400 pieces of at most 32 KiB.
    for (const [name, , twice, length] of read) assert.ok(twice < 10 * length + 400 * 32_768 || name === "code", `${name}: ${twice} of ${length}`);
    for (const [name, once, twice] of read.filter(([name]) => name !== "code")) assert.ok(twice < 3 * once, `${name}: ${once}, then ${twice}`);
  });
}

async function harmless(page, service) {
  await check("markdown: nothing in it loads, runs or leads astray", async () => {
    for (const text of [HOSTILE, NESTED]) {
      const { html } = await drawn(page, text);
      const found = await page.evaluate((html) => {
        const root = new DOMParser().parseFromString(html, "text/html").body;
        return {
          tags: [...new Set([...root.querySelectorAll("*")].map((node) => node.tagName))],
          links: [...root.querySelectorAll("[href]")].map((node) => node.getAttribute("href")),
          attributes: [...new Set([...root.querySelectorAll("*")].flatMap((node) => node.getAttributeNames()))],
        };
      }, html);
      for (const tag of ["IMG", "SCRIPT", "IFRAME", "SVG", "STYLE", "LINK", "BASE", "INPUT", "OBJECT", "FORM"]) assert.ok(!found.tags.includes(tag), tag);
      for (const link of found.links) assert.match(link, /^(https?:\/\/(example\.com|evil\.example)\/|mailto:)/);
      assert.deepEqual(found.attributes.filter((name) => name.startsWith("on") || name === "src" || name === "style"), []);
    }
  });

  await check("markdown: addresses that are no http, https or mailto are no links, in any spelling", async () => {
    const spellings = ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "java&#115;cript:alert(1)", "java&Tab;script:alert(1)", "&#x6A;avascript&colon;alert(1)", "javascript&#58;alert(1)", "%6aavascript:alert(1)", "\\javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "blob:https://example.com/x", "view-source:https://example.com/", "//example.com/x", "/v1/threads", "?x", "#x", "../x", "filesystem:x", "https&#58;//", "http://", "intent:x", "obsidian://open?vault=Notes&append=x", "OBSIDIAN://advanced-uri?commandid=x", "obsidian&#58;//new?name=x"];
    for (const address of spellings) {
      for (const text of [`[a](${address})`, `[a](<${address}>)`, `![a](${address})`, `[a][r]\n\n[r]: ${address}`, `<${address}>`, `[a]( \t${address})`]) {
        const { html } = await drawn(page, text);
        for (const [, link] of html.matchAll(/href="([^"]*)"/g)) assert.match(link, /^(https?|mailto):/, `${text} became ${html}`);
        assert.ok(!/href="(?!https?:|mailto:)/.test(html), `${text} became ${html}`);
      }
    }
  });

  await check("markdown: marks without an end and nesting without a bottom stay words, and the page answers", async () => {
    for (const [name, text] of Object.entries(PATTERNS)) {
      for (const isDone of [false, true]) {
        const { depth, text: shown } = await drawn(page, text, null, isDone);
        assert.ok(depth < 300, `${name}: ${depth} levels of nodes`);
        // Letters are not Markdown markers.
        const letters = (text) => text.replace(/[^a-zé]/gi, "").length;
        if (!name.includes("defin")) assert.ok(letters(shown) >= letters(text.replace(/&\w+;/g, "")), `${name}: ${letters(text)} letters, ${letters(shown)} shown`);
      }
    }
  });

  await check("markdown: nothing ran, and no request but to the service", async () => {
    assert.equal(await page.evaluate(() => window.owned), undefined);
    assert.deepEqual(page.asked.filter((url) => !url.startsWith(service.url)), []);
  });
}

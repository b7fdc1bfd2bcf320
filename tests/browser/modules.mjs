// The page's modules by themselves, in the browser: data in, data out.

import assert from "node:assert/strict";
import { check } from "./harness.mjs";
import { HOSTILE, NESTED } from "./hostile-text.mjs";
import { FIXTURES } from "./markdown-fixtures.mjs";

/** What markdown becomes, written in pieces of `size` characters (0: at once). */
const rendered = (page, text, size) =>
  page.evaluate(
    async ([text, size]) => {
      const { MarkdownWriter } = await import("/web/markdown.js");
      const root = document.createElement("div");
      const blocks = [];
      const head = () => document.createElement("figcaption");
      const writer = new MarkdownWriter(root, { onBlock: (block) => blocks.push(block), codeHead: head });
      for (let at = size || text.length; ; at += size || text.length) {
        writer.show(text.slice(0, at));
        if (at >= text.length) break;
      }
      writer.end();
      return { html: root.innerHTML, blocks };
    },
    [text, size],
  );

export async function modules(page) {
  await check("markdown: each fixture becomes what it should", async () => {
    for (const [text, wanted] of FIXTURES) {
      const { html } = await rendered(page, text, 0);
      assert.ok(html.includes(wanted), `${JSON.stringify(text)} became ${html}, without ${wanted}`);
    }
  });

  await check("markdown: in pieces it is the same", async () => {
    for (const [text] of [...FIXTURES, [HOSTILE], [NESTED]]) {
      const whole = await rendered(page, text, 0);
      for (const size of [1, 2, 3, 5, 7, 11]) assert.deepEqual(await rendered(page, text, size), whole, `${JSON.stringify(text)} by ${size}`);
    }
  });

  await check("markdown: nothing in it loads, runs or leads astray", async () => {
    for (const text of [HOSTILE, NESTED]) {
      const { html } = await rendered(page, text, 3);
      const found = await page.evaluate((html) => {
        const root = new DOMParser().parseFromString(html, "text/html").body;
        return {
          tags: [...new Set([...root.querySelectorAll("*")].map((node) => node.tagName))],
          links: [...root.querySelectorAll("[href]")].map((node) => node.getAttribute("href")),
          attributes: [...new Set([...root.querySelectorAll("*")].flatMap((node) => node.getAttributeNames()))],
        };
      }, html);
      for (const tag of ["IMG", "SCRIPT", "IFRAME", "SVG", "STYLE", "LINK", "BASE", "INPUT", "OBJECT", "FORM"]) assert.ok(!found.tags.includes(tag), tag);
      for (const link of found.links) assert.match(link, /^(https?:\/\/(example\.com|evil\.example)\/|mailto:|obsidian:)/);
      assert.deepEqual(found.attributes.filter((name) => name.startsWith("on") || name === "src" || name === "style"), []);
    }
  });

  await check("markdown: marks without an end are shown as they are", async () => {
    for (const mark of ["*", "_", "`", "- ", "[a]("]) {
      const text = mark.repeat(20_000);
      for (const size of [0, 500]) {
        const { html, blocks } = await rendered(page, text, size);
        assert.ok(html === `<p class="md-plain" dir="auto">${text}</p>`, `${mark}: ${html.slice(0, 60)}`);
        assert.ok(blocks.length === 1 && blocks[0] === text, mark);
      }
    }
    // Much that is decided on is none of that.
    const long = "word **bold** 🖼 ".repeat(5_000);
    assert.deepEqual(await rendered(page, long, 0), await rendered(page, long, 777));
    assert.ok(!(await rendered(page, long, 0)).html.includes("md-plain"));
  });

  await check("markdown: finished blocks are told, each once", async () => {
    const { blocks } = await rendered(page, "one\n\ntwo **strong**\n\n- a\n- b\n", 1);
    assert.deepEqual(blocks, ["one", "two strong", "ab"]);
  });

  await check("server-sent events: cut anywhere, the same events", async () => {
    const text = ": hello\r\n\r\nid: 1\r\ndata: {\"a\":1}\r\n\r\nid: 2\ndata: one\ndata: two\n\nevent: x\ndata:none\n\r\ndata: é\r\rdata: lost";
    const read = (size) =>
      page.evaluate(
        async ([text, size]) => {
          const { Reader } = await import("/web/sse.js");
          const reader = new Reader();
          const events = [];
          for (let at = 0; at < text.length; at += size) events.push(...reader.push(text.slice(at, at + size)));
          return events;
        },
        [text, size],
      );
    const whole = await read(text.length);
    assert.deepEqual(whole.map(({ id, data }) => [id, data]), [["1", "{\"a\":1}"], ["2", "one\ntwo"], ["2", "none"], ["2", "é"]]);
    for (const size of [1, 2, 3, 5, 7]) assert.deepEqual(await read(size), whole);
  });

  await check("JSON Patch: add, replace, remove; anything else is refused", async () => {
    const patched = (document, operations) =>
      page.evaluate(async ([document, operations]) => (await import("/web/patch.js")).patched(document, operations), [document, operations]);
    const tasks = { tasks: [{ id: "1" }, { id: "2" }] };
    assert.deepEqual(await patched(tasks, [{ op: "remove", path: "/tasks/0" }, { op: "add", path: "/tasks/1", value: { id: "3" } }, { op: "replace", path: "/tasks/0", value: { id: "2b" } }]), { tasks: [{ id: "2b" }, { id: "3" }] });
    assert.deepEqual(await patched({ "a/b": 1 }, [{ op: "replace", path: "/a~1b", value: 2 }]), { "a/b": 2 });
    await assert.rejects(patched(tasks, [{ op: "move", from: "/tasks/0", path: "/tasks/1" }]));
    await assert.rejects(patched(tasks, [{ op: "add", path: "/nothing/0", value: 1 }]));
  });

  await check("numbers are as people read them, and an unknown price is never zero", async () => {
    const told = await page.evaluate(async () => {
      const { cost, count, duration, remaining, tokens } = await import("/web/format.js");
      return [cost(null), cost(undefined), cost(0), cost(0.0003), cost(1.5), count(812), count(12_400), duration(340), duration(1340), remaining(61_000), remaining(7 * 86_400_000), tokens({}), tokens({ input_tokens: 1 })];
    });
    assert.deepEqual(told, ["$?", "$?", "$0", "$0.0003", "$1.50", "812", "12.4K", "340 ms", "1.3 s", "in 1:01", "in 7 days", "", "1/? tok"]);
  });

  await check("waterfall: in order, within its width, and a long wait leaves room for the rest", async () => {
    const places = await page.evaluate(async () => {
      const { timeline } = await import("/web/timeline.js");
      const steps = [
        { kind: "queue", offset_ms: 0, ms: 10 },
        { kind: "model", offset_ms: 10, ms: 90 },
        { kind: "wait", offset_ms: 100, ms: 86_400_000 },
        { kind: "tool", offset_ms: 86_400_100, ms: 100 },
      ];
      return timeline(steps, 86_400_200);
    });
    const [queue, model, wait, tool] = places;
    assert.ok(queue.left === 0 && model.left > queue.left && wait.left > model.left && tool.left > wait.left);
    assert.ok(wait.width < 15 && tool.width > 35, JSON.stringify(places));
    for (const { left, width } of places) assert.ok(left >= 0 && left + width <= 100.7, JSON.stringify(places));
  });
}

// The page's modules by themselves, in the browser: data in, data out.

import assert from "node:assert/strict";
import { check } from "./harness.mjs";

export async function modules(page) {
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
    assert.deepEqual(told, ["$?", "$?", "$0", "$0.0003", "$1.50", "812", "12.4k", "340 ms", "1.3 s", "1:01", "7 days", "", "1/? tok"]);
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

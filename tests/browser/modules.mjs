// Unit tests of the page's modules, run in the browser: data in, data out.

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
    const actual = await page.evaluate(async () => {
      const { cost, count, duration, remaining, tokens } = await import("/web/format.js");
      return [cost(null), cost(undefined), cost(0), cost(0.0003), cost(1.5), count(812), count(12_400), duration(340), duration(1340), remaining(61_000), remaining(7 * 86_400_000), tokens({}), tokens({ input_tokens: 1 })];
    });
    // Browsers format thousands differently.
    assert.deepEqual(actual.map((text) => text.replace("K", "k")), ["price not known", "price not known", "$0", "$0.0003", "$1.50", "812", "12.4k", "340 ms", "1.3 s", "in 1:01", "in 7 days", "", "1/? tok"]);
  });

  await check("events: the steps of a turn, the time it works, and what did not run", async () => {
    const actual = await page.evaluate(async () => {
      const { afterEvent, newTurn, resumed, turnsOf, worked } = await import("/web/conversation.js");
      const custom = (name, value) => ({ type: "CUSTOM", name, value });
      const call = (id, toolCallName) => [{ type: "TOOL_CALL_START", toolCallId: id, toolCallName }, { type: "TOOL_CALL_ARGS", toolCallId: id, delta: "{}" }, { type: "TOOL_CALL_END", toolCallId: id }];
      const result = (toolCallId, content, metadata) => ({ type: "TOOL_CALL_RESULT", toolCallId, content: JSON.stringify(content), metadata });
      const events = [
        { type: "STEP_STARTED", stepName: "model 1" },
        custom("reading", { done: 10, total: 40 }),
        custom("reading", { done: 30, total: 40 }),
        custom("retrying", { attempt: 1, wait_ms: 4000 }),
        ...call("a", "one"), ...call("b", "one"), ...call("c", "two"),
        result("a", { success: true, data: 1 }, { ms: 3 }),
        result("b", { success: false, error: "broke" }, { ms: 3 }),
        result("c", { success: false, error: "not clear" }, {}),
        { type: "STEP_STARTED", stepName: "model 2" },
      ];
      const began = new Date(1000).toISOString();
      let turn = events.reduce((turn, event) => afterEvent(turn, event, 2000), newTurn("k", "words", began));
      const { steps } = turn;
      const statuses = turn.parts.map((part) => part.status);
      const times = [worked(turn, 6000)];
      turn = afterEvent(turn, { type: "RUN_FINISHED", outcome: { type: "interrupt", interrupts: [] } }, 7000);
      turn = resumed({ ...turn, decision: { timing_ms: { llm: 5000, tools: 1000, total: 99_000 } } }, [], {}, 90_000);
      times.push(worked(turn, 92_000));
      turn = afterEvent(turn, { type: "TEXT_MESSAGE_START", messageId: "x-end" });
      turn = afterEvent(turn, { type: "TEXT_MESSAGE_CONTENT", messageId: "x-end", delta: "Stopped." });
      turn = afterEvent(turn, { type: "RUN_FINISHED", outcome: { type: "cancelled" } }, 93_000);
      const texts = turn.parts.filter((part) => part.kind === "text").length;
      const stored = [
        { role: "user", content: "delete it", run_id: "r" },
        { role: "assistant", content: "", run_id: "r", tool_calls: [{ id: "d", tool: "delete_task", args: {} }, { id: "e", tool: "add_task", args: {} }, { id: "f", tool: "launch", args: {} }, { id: "g", tool: "launch", args: {} }] },
        { role: "tool", run_id: "r", tool_call_id: "d", content: "", result: { success: false, error: "no" }, asked: "Delete “milk”" },
        { role: "tool", run_id: "r", tool_call_id: "e", content: "", result: { success: false, error: "broke" }, ms: 4 },
        { role: "tool", run_id: "r", tool_call_id: "f", content: "", result: { success: false, error: "unknown: …", data: { status: "unknown" } }, asked: "Launch" },
        { role: "tool", run_id: "r", tool_call_id: "g", content: "", result: { success: true, data: { status: "done" } }, asked: "Launch" },
      ];
      const [again] = turnsOf(stored, [], new Map([["r", { id: "r", outcome: "REFUSAL:CONFIRMATION_DENIED" }]]));
      return { steps, statuses, times, texts, status: turn.status, again: again.parts.map(({ status, summary }) => [status, summary ?? null]) };
    });
    assert.deepEqual(actual.steps, [
      { kind: "model", number: 1 }, { kind: "reading", share: 0.75 }, { kind: "retrying", attempt: 1, until: 6000 },
      { kind: "tool", name: "one", count: 2 }, { kind: "tool", name: "two", count: 1 }, { kind: "model", number: 2 },
    ]);
    assert.deepEqual(actual.statuses, ["ok", "failed", "refused"]);
    assert.deepEqual(actual.times, [5000, 8000], "what a person took to answer is no work");
    assert.deepEqual([actual.texts, actual.status], [0, "stopped"]);
    assert.deepEqual(actual.again, [["refused", "Delete “milk”"], ["failed", null], ["open", "Launch"], ["settled", "Launch"]]);
  });

  await check("calls in words: ours, those of servers, those that fail, and names that are traps", async () => {
    const words = await page.evaluate(async () => {
      const { callWords, toolTitle } = await import("/web/calls.js");
      const tools = [{ name: "maths__add", title: "Get a sum" }];
      const actual = (name, args, result, more) => callWords({ kind: "tool", name, args, result, status: result?.success ? "ok" : "failed", ...more }, tools).text;
      return [
        actual("add_task", {}, { success: true, data: { description: "buy\n  milk" } }),
        actual("add_task", {}, { success: true, data: { description: { odd: 1 } } }),
        actual("delete_task", {}, { success: true, data: { note: "changed", arguments: {}, result: { description: "two" } } }),
        actual("list_tasks", {}, { success: true, data: { tasks: [] } }),
        actual("list_tasks", {}, { success: true, data: { tasks: [1] } }),
        actual("maths__add", { a: 2, b: 3 }, { success: true, data: [{ type: "text", text: "5" }] }),
        actual("git__git_log", { path: "." }, { success: true, data: "many\nlines" }),
        actual("notes", {}, { success: true, data: { id: 1, more: 2 } }, { summary: "Wrote the note." }),
        actual("constructor", {}, { success: true, data: {} }),
        actual("__proto__", {}, { success: false, error: "no" }),
        toolTitle("a.b__a.b_c"),
      ];
    });
    assert.deepEqual(words, ["Added “buy milk”", "Add a task → 1", "Deleted “two”", "There are no tasks", "Listed 1 task", "Get a sum: 2, 3 → 5", "Log: .", "Wrote the note", "Constructor", "Proto failed", "C"]);
  });

  await check("text: cut between characters, never inside of one", async () => {
    const found = await page.evaluate(async () => {
      const { beginning, fitting, pieces, shortened } = await import("/web/text.js");
      const { callWords } = await import("/web/calls.js");
      const family = "👩‍👩‍👧‍👦";
      const all = ["a👍b", `${family}${family}`, "e\u0301e\u0301e\u0301", "🇩🇪🇫🇷", "नमस्ते", "x".repeat(10), `a${"\u0301".repeat(5000)}`, "👍".repeat(9000)];
      const wrong = [];
      const ends = (text) => new Set([...new Intl.Segmenter("en", { granularity: "grapheme" }).segment(text)].map(({ index, segment }) => index + segment.length));
      for (const text of all) {
        for (let length = 2; length < 12; length += 1) {
          const cut = fitting(text, length);
          if (!text.startsWith(cut) || cut.length > length || cut === "" || !cut.isWellFormed()) wrong.push(["fitting", text.slice(0, 20), length]);
          const first = beginning(text, length);
          if (!text.startsWith(first) || !first.isWellFormed() || (first.length < length * 25 && !ends(text).has(first.length))) wrong.push(["beginning", text.slice(0, 20), length]);
          const parts = pieces(text, length);
          if (parts.join("") !== text || parts.some((part) => !part.isWellFormed() || part.length > length)) wrong.push(["pieces", text.slice(0, 20), length]);
        }
      }
      return {
        wrong,
        beginnings: [beginning(`${family}${family}${family}`, 2) === family + family, beginning("a👍b", 2), beginning("", 3), beginning(`a${"\u0301".repeat(5000)}`, 2).length],
        shortened: [shortened("abc", 3), shortened("abcd", 3), shortened(`${family}${family}`, 2) === family + family, shortened("👍👍👍", 2)],
        pieces: [pieces("", 4), pieces("👍👍👍", 4)],
        words: callWords({ name: "𐐨dd", args: { what: "👍".repeat(90) }, status: "running" }, []).text,
      };
    });
    assert.deepEqual(found.wrong, []);
    assert.deepEqual(found.beginnings, [true, "a👍", "", 50]);
    assert.deepEqual(found.shortened, ["abc", "ab…", true, "👍…"]);
    assert.deepEqual(found.pieces, [[], ["👍👍", "👍"]]);
    assert.equal(found.words, `𐐀dd: ${"👍".repeat(79)}…`);
  });

  await check("a call says how far it is while it runs, and not when it has ended", async () => {
    const actual = await page.evaluate(async () => {
      const { afterEvent, newTurn } = await import("/web/conversation.js");
      const { callWords } = await import("/web/calls.js");
      const progress = (id, text) => ({ type: "CUSTOM", name: "progress", value: { tool_call_id: id, done: 3, total: 10, text } });
      let turn = newTurn("k", "words", new Date().toISOString());
      const said = [];
      for (const event of [
        { type: "TOOL_CALL_START", toolCallId: "a", toolCallName: "files__read" },
        progress("a", "3 of 10: reading a.txt"),
        progress("b", "of a call that there is not"),
        { type: "TOOL_CALL_RESULT", toolCallId: "a", content: JSON.stringify({ success: true, data: "x" }), metadata: { ms: 5 } },
        progress("a", "too late"),
      ]) {
        turn = afterEvent(turn, event);
        said.push(callWords(turn.parts[0], []).at ?? null);
      }
      return said;
    });
    assert.deepEqual(actual, [null, "3 of 10: reading a.txt", "3 of 10: reading a.txt", null, null]);
  });

  await check("starters: out of the tools there are, and no others", async () => {
    const actual = await page.evaluate(async () => {
      const { starters } = await import("/web/starters.js");
      const of = (...names) => starters({ tools: names.map((name) => ({ name })) }).map(({ text }) => text);
      return [of(), of("add_task", "list_tasks"), of("remember", "search_notes"), of("git__log", "files__read", "files__write"), of("add_task", "list_tasks", "remember", "search_notes", "write_daily_note", "git__log").length];
    });
    assert.deepEqual(actual, [
      ["What can you do?"],
      ["Add buy milk", "What is on my list?", "What can you do?"],
      ["Search my notes for ", "Remember that ", "What can you do?"],
      ["What can you do with git?", "What can you do with files?", "What can you do?"],
      5,
    ]);
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

// Every error and empty state of the page.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { check, last, lines, open, say, serve, settled } from "./harness.mjs";
import { OTHER } from "./hostile.mjs";

const LONG = "Donaudampfschifffahrtsgesellschaftskapitän".repeat(12);
const CODE = Array.from({ length: 400 }, (_, at) => `line ${at + 1}: ${"x".repeat(at % 160)}`).join("\n");

export const STATES = lines(
  { config: { retries: 0 } },
  { match: "\"success\":false", text: "That did not work." },
  { match: "\"success\":true", text: "Done." },
  { match: "too often", fault: "rate_limit", retry_after_s: 59 },
  { match: "trouble", fault: "server", once: true },
  { match: "long word", text: `${LONG} ends.` },
  { match: "long code", text: `Here:\n\n\`\`\`text\n${CODE}\n\`\`\`\n\nThat was it.` },
  { match: "hebrew", text: "שלום! **שתי** משימות:\n\n- קניית חלב\n- שיחה לרופא\n\nAnd English." },
  { match: "many", calls: Array.from({ length: 12 }, (_, at) => ({ name: "add_task", args: { description: `task number ${at + 1}` } })) },
  { match: "add ", calls: [{ name: "add_task", args: { description: "{{rest}}" } }] },
  { match: "delete ", calls: [{ name: "delete_task", args: { task_id: "{{rest}}" } }] },
  { match: "grumble", calls: [{ name: "other__grumble", args: { words: "please" } }] },
  { match: "take a nap", calls: [{ name: "other__nap", args: {} }] },
  { match: "launch", calls: [{ name: "other__launch", args: { words: "rocket" } }] },
  { text: "I heard you.", repeat: true },
);

export async function states(browser) {
  const service = await serve({ script: STATES, toml: OTHER.replace("[agent]", '[agent]\nconfirmation_expiry = "15s"') });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  const fits = async () => {
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `the page is ${over} px wider than the screen`);
    const inner = await page.evaluate(() => {
      const scroll = document.querySelector(".scroll");
      return scroll.scrollWidth - scroll.clientWidth;
    });
    assert.ok(inner <= 0, `the conversation is ${inner} px wider than its pane`);
  };
  try {
    await here("an answer that is there at once is read out too", async () => {
      const events = [
        { type: "RUN_STARTED", threadId: "t", runId: "r" },
        { type: "STEP_STARTED", stepName: "model 1" },
        { type: "TEXT_MESSAGE_START", messageId: "m", role: "assistant" },
        { type: "TEXT_MESSAGE_CONTENT", messageId: "m", delta: "All of it came in one piece." },
        { type: "TEXT_MESSAGE_END", messageId: "m" },
        { type: "CUSTOM", name: "decision", value: { decision_id: "d", decision: "RESPOND_ONLY" } },
        { type: "RUN_FINISHED", threadId: "t", runId: "r" },
      ];
      const body = events.map((event, at) => `id: ${at}\ndata: ${JSON.stringify(event)}\n\n`).join("");
      await page.route("**/v1/runs", (route) => route.fulfill({ contentType: "text/event-stream", body }));
      await say(page, "hello");
      await settled(page, 1);
      assert.match(await page.locator("#said").innerText(), /All of it came in one piece/);
      await page.unroute("**/v1/runs");
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.locator(".examples").waitFor();
    });

    await here("too many requests: said, with a countdown, and not tried before", async () => {
      await say(page, "you ask too often");
      await settled(page, 1);
      const button = last(page).getByRole("button", { name: /^Try again in \d+ s$/ });
      await button.waitFor();
      assert.equal(await button.getAttribute("aria-disabled"), "true");
      const before = await button.innerText();
      await page.waitForFunction((before) => document.querySelector(".problem .button").innerText !== before, before);
      await button.click({ force: true });
      assert.equal(await page.locator(".turn").count(), 1);
    });

    await here("the provider fails: words, code and turn, and it may be tried again", async () => {
      await say(page, "there is trouble");
      await settled(page, 2);
      assert.doesNotMatch(await last(page).innerText(), /code server/);
      await last(page).getByText("Details for support").click();
      assert.match(await last(page).locator(".facts").innerText(), /code server · turn [0-9a-f-]{36}/);
      await last(page).getByRole("button", { name: "Try again" }).click();
      // The new turn takes the place of the failed one.
      await last(page).getByText("I heard you.").waitFor();
      await settled(page, 2);
    });

    await here("a request that is refused tells its id", async () => {
      await page.route("**/v1/runs", (route) => route.fulfill({ status: 500, contentType: "application/problem+json", headers: { "x-request-id": "req-7" }, body: JSON.stringify({ title: "Internal error", status: 500, detail: "something went wrong on our side", code: "internal" }) }));
      await say(page, "hello");
      await settled(page, 3);
      await last(page).getByText("Details for support").click();
      assert.match(await last(page).locator(".facts").innerText(), /code internal · request req-7/);
      await page.unroute("**/v1/runs");
    });

    await here("a tool that failed says what failed, why, and what can be done", async () => {
      await say(page, "grumble");
      await settled(page, 4);
      assert.match(await last(page).locator(".tool.is-failed").innerText(), /Grumble: please failed[\s\S]*I will not do that[\s\S]*try again/);
      assert.equal(await last(page).locator(".tool-server").innerText(), "other");
      assert.equal(await last(page).getByText("I will not do that.", { exact: true }).count(), 1, "the answer is the tool's error, said once");
      assert.equal(await last(page).getByText("That did not work.").count(), 0, "the model's words do not stand in its place");
    });

    await here("a tool that would take for ever says how far it is, and Stop ends it", async () => {
      await say(page, "take a nap");
      await last(page).locator(".tool.is-running").waitFor();
      await last(page).locator(".tool-at").getByText("3 of 10: counting sheep", { exact: true }).waitFor();
      const began = Date.now();
      await page.getByRole("button", { name: "Stop" }).click();
      await last(page).getByText("Stopped. Completed actions are not undone.").waitFor();
      // Half a second on a machine that is not busy.
      console.log(`      it took ${Date.now() - began} ms`);
      await settled(page, 5);
      assert.equal(await page.locator(".tool-at").count(), 0);
    });

    await here("in doubt: what became of it is asked, and the answer counts", async () => {
      await say(page, "launch");
      await settled(page, 6);
      const card = page.locator(".confirm");
      assert.match(await card.innerText(), /Was this done\?[\s\S]*It is unknown/);
      await page.waitForFunction(() => document.activeElement?.textContent === "Not done: leave it");
      await card.getByRole("button", { name: "It was done" }).click();
      await page.waitForFunction(() => !document.querySelector(".confirm"));
      await settled(page, 6);
    });

    await here("too late: the question is closed, nothing was done, and it can be asked again", async () => {
      await say(page, "add old milk");
      await settled(page, 7);
      await say(page, "delete old milk");
      await page.locator(".confirm .expiry", { hasText: /0:0\d/ }).waitFor();
      await page.getByText("Nothing was done.").waitFor();
      assert.equal(await page.locator(".confirm").getByRole("button", { name: "Delete" }).count(), 0);
      await page.getByRole("button", { name: "Ask again" }).last().click();
      await page.waitForFunction(() => document.getElementById("composer").value === "delete old milk");
      await page.press("#composer", "Enter");
      await page.locator(".confirm:not(.is-expired)").waitFor();
      await page.locator(".confirm:not(.is-expired)").getByRole("button", { name: "Delete" }).click();
      await page.getByText("No tasks yet.").waitFor();
      await settled(page);
    });

    await here("long words, 400 lines of code and many tasks fit", async () => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await say(page, `a long word ${LONG}`);
      await settled(page, 1);
      await fits();
      await say(page, "long code");
      await settled(page, 2);
      await fits();
      const code = last(page).locator(".code");
      const shown = await code.locator("pre").evaluate((pre) => ({ all: pre.scrollHeight, seen: pre.clientHeight }));
      assert.ok(shown.all > 8_000 && shown.all === shown.seen, "it is there in its full height");
      const head = await page.evaluate(() => {
        const pane = document.querySelector(".scroll");
        const figure = [...document.querySelectorAll(".code")].at(-1);
        pane.scrollTop += figure.getBoundingClientRect().top - pane.getBoundingClientRect().top + 2_000;
        return figure.querySelector("figcaption").getBoundingClientRect().top - pane.getBoundingClientRect().top;
      });
      assert.ok(Math.abs(head) <= 2, `its head stays in sight: ${head}`);
      const wide = () => code.locator("pre").evaluate((pre) => pre.scrollWidth > pre.clientWidth);
      const wrap = code.getByRole("button", { name: "Wrap lines" });
      assert.equal(await wide(), true);
      await wrap.click();
      assert.equal(await wide(), false);
      assert.equal(await wrap.getAttribute("aria-pressed"), "true");
      await wrap.click();
      const [saved] = await Promise.all([page.waitForEvent("download"), code.getByRole("button", { name: "Save" }).click()]);
      assert.match(saved.suggestedFilename(), /^code\.\w+$/);
      assert.equal(readFileSync(await saved.path(), "utf8"), await code.locator("pre").evaluate((pre) => pre.textContent));
      await page.getByRole("button", { name: "Latest" }).click();
      await say(page, "many");
      await settled(page, 3);
      assert.equal(await page.locator(".task").count(), 12);
      await fits();
    });

    await here("right to left: each block finds its own direction", async () => {
      await say(page, "hebrew");
      await settled(page, 4);
      const directions = await last(page).evaluate((turn) => [...turn.querySelectorAll(".markdown p, .markdown li")].map((node) => getComputedStyle(node).direction));
      assert.deepEqual(directions, ["rtl", "rtl", "rtl", "ltr"]);
    });

    await here("the end stays in sight while it comes, and is left alone when the person reads above", async () => {
      const at = () => page.evaluate(() => { const box = document.querySelector(".scroll"); return box.scrollHeight - box.scrollTop - box.clientHeight; });
      assert.ok((await at()) < 4);
      await page.evaluate(() => document.querySelector(".scroll").scrollTo(0, 0));
      await page.getByRole("button", { name: "Latest" }).waitFor();
      await page.getByRole("button", { name: "Latest" }).click();
      await page.waitForFunction(() => { const box = document.querySelector(".scroll"); return box.scrollHeight - box.scrollTop - box.clientHeight < 4; });
    });

    await here("a conversation that is not there", async () => {
      await page.goto(`${service.url}/#/t/01234567-89ab-7def-8123-456789abcdef`);
      await page.getByText("This conversation does not exist (any more).").waitFor();
    });

    await here("offline: said; and when the service does not answer at the start, that is said too", async () => {
      await page.cookies.setOffline(true);
      await page.getByText("You are offline.").waitFor();
      await page.cookies.setOffline(false);
      await page.getByText("You are offline.").waitFor({ state: "detached" });
      await page.route("**/v1/me", (route) => route.abort());
      await page.reload();
      await page.getByRole("heading", { name: "Adjutant is not responding" }).waitFor();
      await page.unroute("**/v1/me");
      await page.getByRole("button", { name: "Try again" }).click();
      await page.locator("#composer").waitFor();
    });

    await here("what the browser has is not sent again", async () => {
      const status = await page.evaluate(async () => {
        const first = await fetch("/web/app.js", { cache: "no-store" });
        const again = await fetch("/web/app.js", { cache: "no-store", headers: { "if-none-match": first.headers.get("etag") } });
        return [first.status, first.headers.get("cache-control"), again.status];
      });
      assert.deepEqual(status, [200, "no-cache", 304]);
    });

    await here("states: nothing broken", () => assert.deepEqual(page.broken, []));
    await page.close();

    await check("--no-ui: no page, the rest as ever", async () => {
      const bare = await serve({ script: STATES, args: ["--no-ui"] });
      try {
        const status = async (path) => (await fetch(bare.url + path, { headers: { authorization: `Bearer ${bare.token}` } })).status;
        assert.deepEqual([await status("/"), await status("/web/app.js"), await status("/v1/me")], [404, 404, 200]);
      } finally {
        await bare.stop();
      }
    });
  } finally {
    await service.stop();
  }
}

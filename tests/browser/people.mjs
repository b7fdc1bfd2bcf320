// Situations beside the answers: drafts, queued messages, a lost connection, an exhausted budget, and an agent with
// other tools.

import assert from "node:assert/strict";
import { check, drawn, last, lines, open, say, serve, settled, violations, wire } from "./harness.mjs";
import { OTHER } from "./hostile.mjs";

const SCRIPT = lines(
  { config: { retries: 1 } },
  { match: "\"success\":true", text: "Noted." },
  { match: "twelve", calls: Array.from({ length: 12 }, (_, at) => ({ name: "add_task", args: { description: `task number ${at + 1}` } })) },
  { match: "five", calls: Array.from({ length: 5 }, (_, at) => ({ name: "add_task", args: { description: `thing ${at + 1}` } })) },
  { match: "which is it", calls: [{ name: "complete_task", args: { task_id: "no such task" } }] },
  { match: "never end", text: "This answer begins and then it stands", fault: "stall" },
  { match: "trouble twice", fault: "rate_limit", retry_after_s: 3, once: true },
  { text: "I heard you.", repeat: true },
);

const draft = (page) => page.locator("#composer").inputValue();
const messageTexts = (page) => page.locator(".bubble").allInnerTexts();

export async function people(browser) {
  const service = await serve({ script: SCRIPT, toml: "[agent]\nmessage_chars_max = 4000\n" });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  try {
    await here("a draft survives a reload, and stays in its conversation", async () => {
      await say(page, "first talk");
      await settled(page, 1);
      await page.fill("#composer", "half a thought");
      await page.reload();
      await settled(page, 1);
      assert.equal(await draft(page), "half a thought");
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.locator(".examples").waitFor();
      assert.equal(await draft(page), "");
      await page.fill("#composer", "for the new one");
      await page.locator(".thread a", { hasText: "first talk" }).click();
      await settled(page, 1);
      assert.equal(await draft(page), "half a thought");
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.waitForFunction(() => document.getElementById("composer").value === "for the new one");
    });

    await here("the browser's time zone is stored for the person, and again when they have travelled", async () => {
      for (const timezoneId of ["Asia/Tokyo", "America/New_York"]) {
        const abroad = await open(browser, service, { timezoneId });
        // A promise would count as a yes.
        const isStored = (zone) => {
          fetch("/v1/settings").then((response) => response.json()).then((settings) => (window.storedZone = settings.time_zone));
          return window.storedZone === zone;
        };
        await abroad.waitForFunction(isStored, timezoneId, { polling: 500 });
        assert.deepEqual(abroad.broken, []);
        await abroad.close();
      }
    });

    await here("what is sent is no draft any more, and of many drafts the last ones are kept", async () => {
      await page.press("#composer", "Enter");
      await settled(page, 1);
      await page.reload();
      await settled(page, 1);
      assert.equal(await draft(page), "");
      const kept = await page.evaluate(async () => {
        const { draftOf, keepDraft } = await import("/web/drafts.js");
        for (let at = 0; at < 40; at += 1) keepDraft(`t${at}`, { text: "x".repeat(60_000) });
        const count = Object.keys(localStorage).filter((key) => key.startsWith("adjutant.draft.")).length;
        const lengths = [draftOf("t39").text.length, draftOf("t0").text.length];
        for (let at = 0; at < 40; at += 1) keepDraft(`t${at}`, {});
        return [count, ...lengths];
      });
      assert.deepEqual(kept, [30, 50_000, 0]);
    });

    await here("of a message over the limit the beginning is read, which is said before it is sent", async () => {
      await page.fill("#composer", "x".repeat(4001));
      assert.match(await page.locator("#composer-hint").innerText(), /4,001 characters: only the first 4,000 will be read/);
      await page.fill("#composer", "");
    });

    await here("a browser that stores nothing does no harm", async () => {
      const other = await page.cookies.newPage();
      await other.addInitScript(() => {
        for (const name of ["getItem", "setItem", "removeItem"]) Storage.prototype[name] = () => { throw new DOMException("no", "SecurityError"); };
      });
      const broken = [];
      other.on("pageerror", (error) => broken.push(error.stack));
      await other.goto(service.url);
      await say(other, "hello without a store");
      await settled(other, 1);
      assert.deepEqual(broken, []);
      await other.close();
    });

    await here("Enter while it answers: it waits, can be taken back and changed, and is sent when the answer has ended", async () => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.locator(".examples").waitFor();
      // The run takes until `release` is called.
      let release;
      const held = new Promise((resolve) => (release = resolve));
      await page.route("**/v1/runs", async (route) => (await held, route.continue()), { times: 1 });
      await say(page, "slow please");
      await page.locator(".is-stop").waitFor();
      await say(page, "and one");
      await say(page, "and two");
      await page.waitForFunction(() => document.querySelectorAll(".queued-words").length === 2);
      assert.deepEqual(await page.locator(".queued-words").allInnerTexts(), ["and one", "and two"]);
      assert.deepEqual(await messageTexts(page), ["slow please"]);
      await page.getByRole("button", { name: "Take back and edit" }).first().click();
      await page.waitForFunction(() => document.getElementById("composer").value === "and one");
      assert.equal(await page.evaluate(() => document.activeElement.id), "composer");
      await page.fill("#composer", "and one, changed");
      await page.press("#composer", "Enter");
      release();
      await settled(page, 3);
      assert.deepEqual(await messageTexts(page), ["slow please", "and two", "and one, changed"]);
      assert.equal(await page.locator(".queued").count(), 0);
    });

    await here("after Stop it is not sent by itself but is the draft again", async () => {
      await say(page, "never end");
      await page.locator("main").getByText("This answer begins").waitFor();
      await say(page, "not this");
      await page.fill("#composer", "nor that");
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await last(page).getByText("Stopped.").waitFor();
      await settled(page, 4);
      assert.equal(await draft(page), "not this\n\nnor that");
      await page.fill("#composer", "");
    });

    await here("asked again after a failure: the seconds until then count down in the steps", async () => {
      await say(page, "trouble twice");
      await page.locator(".step-line.is-late", { hasText: /retrying in [123] s/ }).waitFor();
      await settled(page, 5);
    });

    await here("five calls are one block of five lines; twelve are folded, and open", async () => {
      await say(page, "five");
      await settled(page, 6);
      assert.equal(await last(page).locator(".calls").count(), 1);
      assert.deepEqual(await last(page).locator(".tool-words").allInnerTexts(), [1, 2, 3, 4, 5].map((at) => `Added “thing ${at}”`));
      await say(page, "twelve");
      await settled(page, 7);
      assert.equal(await last(page).locator(".tool").count(), 5);
      await last(page).getByRole("button", { name: "Show 7 more" }).click();
      assert.equal(await last(page).locator(".tool").count(), 12);
    });

    await here("a call that was not clear is not done, which is no failure", async () => {
      await say(page, "which is it");
      await settled(page, 8);
      assert.match(await last(page).locator(".tool.is-refused").innerText(), /^Not done: Complete a task: no such task/);
    });

    await here("nothing of a message that is only seen under the pointer leaves a hole", async () => {
      const gap = await page.evaluate(() => {
        const turn = document.querySelector(".turn:last-child");
        return turn.querySelector(".answered").getBoundingClientRect().top - turn.querySelector(".bubble").getBoundingClientRect().bottom;
      });
      assert.ok(gap <= 20, `${gap} px`);
      await page.getByRole("button", { name: "Copy message" }).first().focus();
      await page.waitForFunction(() => getComputedStyle(document.activeElement).opacity === "1");
    });

    await here("in German, with forced colours and 320 px: the same in German, all of it fits, and axe-core finds nothing", async () => {
      const german = await open(browser, service, { locale: "de-DE", size: { width: 320, height: 640 }, forcedColors: "active" });
      const look = async (state) => {
        assert.deepEqual(await violations(german), [], state);
        assert.ok(await german.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${state} is too wide`);
      };
      await look("empty");
      await say(german, "five");
      await settled(german, 1);
      assert.deepEqual(await german.locator(".tool-words").allInnerTexts(), [1, 2, 3, 4, 5].map((at) => `„thing ${at}“ hinzugefügt`));
      await german.locator(".badge").click();
      await german.getByRole("button", { name: "Jeden Schritt zeigen" }).waitFor();
      await german.locator(".tool-head").first().click();
      await look("calls and details");
      await say(german, "never end");
      await german.locator("main").getByText("This answer begins").waitFor();
      await say(german, "und noch etwas");
      await german.locator(".queued").waitFor();
      await look("queued");
      await german.getByRole("button", { name: "Stopp", exact: true }).click();
      await german.getByText("Gestoppt.").waitFor();
      await german.waitForFunction(() => document.getElementById("composer").value === "und noch etwas");
      await look("stopped");
      assert.deepEqual(german.broken, []);
      await german.close();
    });

    await here("people: nothing broken", () => assert.deepEqual(page.broken, []));
    await page.close();

    const cable = await wire(service.url);
    const far = await open(browser, service, { base: cable.url });
    await check("without a connection: it was not sent, it says so, it can be taken back, and it is sent when there is one", async () => {
      cable.cut();
      await say(far, "into the void\nand back");
      await far.getByText("Not sent yet: there is no connection.").waitFor();
      assert.equal(await far.locator("h1").innerText(), "into the void and back");
      await far.getByRole("button", { name: "Stop", exact: true }).click();
      await far.waitForFunction(() => document.getElementById("composer").value === "into the void\nand back");
      assert.equal(await far.locator(".turn").count(), 0);
      await far.press("#composer", "Enter");
      await far.getByText("Not sent yet: there is no connection.").waitFor();
      cable.mend();
      await settled(far, 1);
      assert.equal(await draft(far), "");
      assert.deepEqual(await messageTexts(far), ["into the void\nand back"]);
      assert.deepEqual(far.broken, []);
    }, far);
    await far.close();
    await cable.stop();
  } finally {
    await service.stop();
  }

  const rich = await serve({ script: SCRIPT, toml: `[budget]\nper_day_model_calls = 6\n${OTHER}` });
  const guest = await open(browser, rich);
  try {
    await check("an agent with servers: they are in the starters and to be found, with their tools", async () => {
      const starters = await guest.locator(".examples button").allInnerTexts();
      assert.ok(starters.includes("What can you do with other?"), starters.join());
      await guest.locator(".ability summary", { hasText: "other" }).click();
      assert.ok((await guest.locator(".ability li").allInnerTexts()).includes("Grumble"));
      assert.deepEqual(await violations(guest), []);
    }, guest);

    await check("a budget: what is left is said when it is little, and what is used up is headed so, with when there is more", async () => {
      for (const [at, words] of ["one", "two", "three", "four"].entries()) {
        await say(guest, words);
        await settled(guest, at + 1);
        assert.equal(await guest.locator(".budget").count(), 0);
      }
      await say(guest, "number 5");
      await settled(guest, 5);
      await guest.locator(".budget", { hasText: "17% of your budget for today is left. It resets at 00:00." }).waitFor();
      await say(guest, "number 6");
      await settled(guest, 6);
      await say(guest, "number 7");
      await settled(guest, 7);
      await guest.locator(".budget", { hasText: "used up" }).waitFor();
      const problem = last(guest).locator(".problem");
      assert.match(await problem.innerText(), /^The budget is used up[\s\S]*It resets at 00:00\./);
      assert.equal(await problem.getByRole("button", { name: "Try again" }).count(), 0);
      await drawn(guest);
      assert.deepEqual(await violations(guest), []);
      assert.deepEqual(guest.broken, []);
    }, guest);
    await guest.close();
  } finally {
    await rich.stop();
  }
}

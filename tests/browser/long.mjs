// A conversation with thousands of turns opens as fast as a short one, and typing or a new answer redraws no other
// turn.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { check, drawn, last, lines, open, say, serve, settled } from "./harness.mjs";

const ANSWER = Array.from({ length: 40 }, (_, at) => `Sentence number ${at + 1} of the answer.`).join(" ");
const SCRIPT = lines(
  { match: "at length", text: ANSWER },
  { match: "wait here", text: "This answer begins and then it stands", fault: "stall" },
  { text: "I heard you, and this is said so that the answer takes a line or two of the page.", repeat: true },
);

/** Repeats the first turn of each conversation until it has the given number (`{ title: turns }`). */
function fill(home, turnsOf) {
  const database = join(home, "data", "adjutant", "adjutant.db");
  const program = fileURLToPath(new URL("fill.py", import.meta.url));
  const filled = spawnSync("python3", [program, database, JSON.stringify(turnsOf)], { encoding: "utf8" });
  assert.equal(filled.status, 0, filled.stderr ?? String(filled.error));
}

const nodes = (page) => page.evaluate(() => document.querySelectorAll(".chat *").length);
const messageTexts = (page) => page.locator(".bubble").allTextContents();

/** Starts to record which turns are redrawn, and how often the conversation is. */
const watch = (page) =>
  page.evaluate(() => {
    const pane = document.querySelector(".scroll");
    const turns = [...document.querySelectorAll(".turn")];
    const seen = { turns: new Set(), draws: 0 };
    const placeOf = (node) => {
      const turn = (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)?.closest(".turn");
      return turn ? (turns.includes(turn) ? turns.indexOf(turn) - turns.length : "new") : "list";
    };
    new MutationObserver((changes) => changes.forEach(({ target, type }) => {
      // A turn that goes far away or comes near is not drawn for that.
      if (type !== "attributes" || !target.matches(".turn")) seen.turns.add(placeOf(target));
    })).observe(pane, { subtree: true, childList: true, characterData: true, attributes: true });
    // While the end is visible, every redraw of the conversation scrolls to its end.
    const { set, get } = Object.getOwnPropertyDescriptor(Element.prototype, "scrollTop");
    Object.defineProperty(pane, "scrollTop", { get, set(top) { seen.draws += 1; set.call(this, top); }, configurable: true });
    window.seen = seen;
  });
const seen = (page) => page.evaluate(() => ({ turns: [...window.seen.turns], draws: window.seen.draws }));

export async function long(browser) {
  const service = await serve({ script: SCRIPT });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  const openThread = async (title) => {
    await page.locator(".thread a", { hasText: new RegExp(`^\\s*${title}\\s*$`) }).click();
    await page.locator(".bubble").first().waitFor();
    await settled(page);
  };
  try {
    for (const title of ["short talk", "long talk"]) {
      await page.getByRole("button", { name: "New conversation" }).click();
      await say(page, title);
      await settled(page, 1);
    }
    fill(service.home, { "short talk": 50, "long talk": 2500 });
    await page.reload();
    await page.waitForSelector(".thread");

    await here("2,500 turns open with as many nodes as 50", async () => {
      const counted = [];
      for (const [title, turns] of [["short talk", 50], ["long talk", 2500]]) {
        await openThread(title);
        assert.deepEqual(await messageTexts(page), Array.from({ length: 25 }, (_, at) => `${title} ${turns - 24 + at}`));
        assert.equal(await page.locator(".badge").count(), 25, "each of them opens its trace");
        counted.push(await nodes(page));
      }
      assert.equal(counted[0], counted[1]);
      assert.ok(counted[1] < 1500, `${counted[1]} nodes`);
    });

    await here("scrolled up: older turns come, and what is read stays where it is", async () => {
      const place = (words) => page.evaluate((words) => [...document.querySelectorAll(".bubble")].find((bubble) => bubble.textContent === words)?.getBoundingClientRect().top, words);
      const older = () => page.waitForResponse((response) => response.url().includes("before="));
      for (const count of [50, 75]) {
        const first = (await messageTexts(page))[0];
        const loaded = older();
        const before = await page.evaluate(() => {
          const pane = document.querySelector(".scroll");
          pane.scrollTop = 100;
          return document.querySelector(".bubble").getBoundingClientRect().top;
        });
        await loaded;
        await page.waitForFunction((count) => document.querySelectorAll(".turn").length === count, count);
        await drawn(page);
        // Scroll positions are rounded to whole pixels of the screen.
        assert.ok(Math.abs((await place(first)) - before) <= 1, `${before} and then ${await place(first)}`);
        assert.deepEqual(await messageTexts(page), Array.from({ length: count }, (_, at) => `long talk ${2501 - count + at}`));
        assert.equal(await page.locator(".badge").count(), count, "each of them opens its trace");
      }
    });

    await here("what was read and is far away is left out of layout and painting, at its height", async () => {
      const counted = () => page.evaluate(() => {
        const turns = [...document.querySelectorAll(".turn")];
        const shown = turns.filter((turn) => turn.querySelector(".bubble").checkVisibility({ contentVisibilityAuto: true }));
        return { all: turns.length, shown: shown.length, height: document.querySelector(".scroll").scrollHeight };
      });
      await page.waitForFunction(() => document.querySelectorAll(".turn").length > [...document.querySelectorAll(".bubble")].filter((bubble) => bubble.checkVisibility({ contentVisibilityAuto: true })).length * 2);
      const before = await counted();
      await page.evaluate(() => {
        for (const turn of document.querySelectorAll(".turn")) turn.style.contentVisibility = "visible";
      });
      assert.ok(Math.abs((await counted()).height - before.height) <= before.all, "heights are rounded to whole pixels at most");
    });

    await here("the beginning is reached by the button, and then there is no button", async () => {
      await openThread("short talk");
      await page.getByRole("button", { name: "Show earlier messages" }).focus();
      await page.keyboard.press("Enter");
      await page.waitForFunction(() => document.querySelectorAll(".turn").length === 50);
      assert.equal((await messageTexts(page))[0], "short talk");
      assert.equal(await page.locator(".older").count(), 0);
    });

    await here("a key that is typed draws nothing of the conversation", async () => {
      await openThread("long talk");
      await page.locator("#composer").focus();
      await drawn(page);
      await watch(page);
      await page.keyboard.type("twenty keys, no more");
      await drawn(page);
      assert.deepEqual(await seen(page), { turns: [], draws: 0 });
      assert.equal(await page.locator("#composer").inputValue(), "twenty keys, no more");
      assert.equal(await page.locator(".composer .round").isDisabled(), false);
    });

    await here("an answer draws its own turn, and of the others the one that is not the last any more", async () => {
      await watch(page);
      await say(page, "answer at length");
      await settled(page, 26);
      assert.match(await last(page).innerText(), /Sentence number 40 of the answer/);
      const { turns } = await seen(page);
      assert.deepEqual(turns.filter((turn) => !["new", "list", -1].includes(turn)), []);
      assert.ok(turns.includes("new"));
    });

    await here("a run that goes on after a reload keeps its conversation", async () => {
      await say(page, "wait here");
      await page.locator("main").getByText("This answer begins").waitFor();
      await page.reload();
      await page.locator("main").getByText("This answer begins").waitFor();
      const loaded = page.waitForResponse((response) => response.url().includes("before="));
      await page.getByRole("button", { name: "Show earlier messages" }).click();
      await loaded;
      const count = await page.waitForFunction(() => document.querySelectorAll(".turn").length > 30 && document.querySelectorAll(".turn").length);
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await settled(page);
      assert.equal(await page.locator(".turn").count(), await count.jsonValue(), "what was loaded stays");
    });

    await check("nothing broke", () => assert.deepEqual(page.broken, []), page);
  } finally {
    await page.close();
    await service.stop();
  }
}

// Appearance: violations found by axe-core in both themes and on a phone, and the screenshots of the documentation. A
// sampled run takes each theme and each size once; a long run takes all combinations.

import assert from "node:assert/strict";
import { mkdirSync, statSync } from "node:fs";
import { check, last, lines, open, say, serve, settled, violations } from "./harness.mjs";

const SCRIPT = lines(
  { config: { retries: 0, model: "demo" } },
  { match: "\"deleted\":true", text: "Done, it is off your list." },
  { match: "\"tasks\":[", text: "You have **three open tasks**. The dentist comes first:\n\n1. call the dentist before Thursday\n2. buy milk\n3. write the report\n\nShall I move the report to *next week*?", usage: { input: 1204, output: 58 } },
  { match: "\"success\":true", text: "Noted. Anything else?", usage: { input: 812, output: 41 } },
  { match: "\"success\":false", text: "All right, I kept it.", usage: { input: 860, output: 12 } },
  { match: "add ", calls: [{ name: "add_task", args: { description: "{{rest}}" } }], usage: { input: 780, output: 22 } },
  { match: "delete ", calls: [{ name: "delete_task", args: { task_id: "{{rest}}" } }], usage: { input: 790, output: 19 } },
  { match: "what is open", calls: [{ name: "list_tasks", args: { status: "pending" } }], usage: { input: 770, output: 15 } },
  { match: "trouble", fault: "server" },
  { match: "never end", text: "This answer begins and then it stands", fault: "stall" },
  { match: "everything", thinking: "All of it.", text: "# Title\n\nText with `code`, [a link](https://example.com) and ~~no~~.\n\n> quote\n\n- [ ] a\n- [x] b\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```rust\nfn main() {}\n```\n" },
  { text: "I heard you.", repeat: true },
);

const PICTURES = new URL("../../docs/screenshots/", import.meta.url).pathname;
const LARGEST = 150_000;
const isLong = process.env.ADJUTANT_TEST_SIZE === "long";

export async function looks(browser) {
  const service = await serve({ script: SCRIPT });
  const wide = { width: 1280, height: 800 };
  const phone = { width: 360, height: 740 };
  try {
    const looks = {
      light: { theme: "light", size: wide },
      "phone-dark": { theme: "dark", size: phone, hasTouch: true },
    };
    const others = {
      dark: { theme: "dark", size: wide },
      phone: { theme: "light", size: phone, hasTouch: true },
    };
    for (const [name, options] of Object.entries(isLong ? { ...looks, ...others } : looks)) {
      await tour(browser, service, name, options);
    }
  } finally {
    await service.stop();
  }
  const fresh = await serve({ script: SCRIPT });
  try {
    await pictures(browser, fresh, { wide, phone });
  } finally {
    await fresh.stop();
  }
}

/** Brings the page into every main state and runs axe-core on it. */
async function tour(browser, service, name, options) {
  const isPhone = options.size.width < 760;
  const found = [];
  const look = async (page, state) => {
    for (const violation of await violations(page)) found.push(`${state}: ${violation}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) found.push(`${state}: ${over} px too wide`);
  };
  let page;
  await check(`${name}: axe-core finds nothing in any state, and all of it fits`, async () => {
    const stranger = await open(browser, service, { ...options, link: false });
    await stranger.getByRole("heading", { name: "Sign in to Adjutant" }).waitFor();
    await look(stranger, "sign in");
    await stranger.close();

    page = await open(browser, service, options);
    const send = async (text) => {
      await page.fill("#composer", text);
      await page.getByRole("button", { name: "Send", exact: true }).click();
    };
    const panel = () => page.getByRole("button", { name: "Tasks and trace", exact: true }).click();
    await look(page, "empty");
    await send("everything");
    await settled(page, 1);
    await last(page).locator(".badge").click();
    await last(page).getByText("All of it.").waitFor();
    await look(page, "markdown and details");
    await send("add buy milk");
    await settled(page, 2);
    await last(page).locator(".tool-head").click();
    await look(page, "tool");
    await send("there is trouble");
    await settled(page, 3);
    await look(page, "error");
    await send("never end");
    await page.locator("main").getByText("This answer begins").waitFor();
    await look(page, "running");
    await page.fill("#composer", "and then this");
    await page.getByRole("button", { name: "Send when this answer is complete" }).click();
    await page.locator(".queued").waitFor();
    await look(page, "queued");
    await page.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("button", { name: "Stop" }).click();
    await settled(page, 4);
    await send("delete buy milk");
    await settled(page, 5);
    await look(page, "confirmation");
    await page.locator(".confirm").getByRole("button", { name: "Edit", exact: true }).click();
    await look(page, "edit");
    await page.getByRole("button", { name: "Show the effect" }).click();
    await page.locator(".meaning").waitFor();
    await look(page, "edit with what it means");
    await page.getByRole("button", { name: "Back", exact: true }).click();
    await page.locator(".confirm").getByRole("button", { name: "Keep" }).click();
    await settled(page, 5);

    if (isPhone) await panel();
    await page.getByLabel("Complete buy milk").waitFor();
    await look(page, "tasks");
    await page.getByRole("button", { name: "Delete buy milk" }).click();
    await page.locator(".task .ask").waitFor();
    await look(page, "task to delete");
    await page.locator(".task .ask").getByRole("button", { name: "Delete" }).click();
    await page.getByText("No tasks yet.").waitFor();
    await look(page, "no tasks");
    await page.getByRole("tab", { name: "Trace" }).click();
    await page.locator(".decisions li").first().waitFor();
    await look(page, "trace list");
    await page.locator(".decisions button").nth(3).click();
    await page.locator(".waterfall").waitFor();
    for (const step of await page.locator(".waterfall > li > button").all()) await step.click();
    await page.getByRole("button", { name: "Raw JSON" }).click();
    await look(page, "trace");
    if (isPhone) {
      await page.keyboard.press("Escape");
      await page.locator(".app:not(.shows-panel)").waitFor();
      await page.getByRole("button", { name: "Conversations", exact: true }).click();
    }
    await page.getByRole("button", { name: /^Menu of / }).first().click();
    await look(page, "conversation menu");
    await page.getByRole("button", { name: "Delete…" }).click();
    await look(page, "conversation to delete");
    await page.locator(".thread .ask").getByRole("button", { name: "Keep" }).click();
    await page.getByLabel("Search titles and messages").fill("milk");
    await page.locator(".thread-said").first().waitFor();
    await look(page, "search");
    await page.getByLabel("Search titles and messages").fill("");
    await page.waitForFunction(() => document.querySelector(".thread-said") === null);
    await page.getByRole("button", { name: "Keyboard shortcuts" }).click();
    await page.getByRole("dialog").waitFor();
    await look(page, "keys");
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    await page.getByRole("button", { name: "Settings" }).click();
    await page.getByRole("dialog").waitFor();
    await look(page, "settings");
    await page.getByRole("button", { name: "Close", exact: true }).last().click();
    await page.emulateMedia({ reducedMotion: "reduce" });
    const moving = await page.evaluate(() => document.getAnimations().length);
    if (moving) found.push(`${moving} things move although none should`);
    assert.deepEqual(found, []);
    assert.deepEqual(page.broken, []);
  }, page);
  await page?.close();
}

/** Takes the screenshots, which are the same every time except for the clock. */
async function pictures(browser, service, { wide, phone }) {
  const isUpdate = Boolean(process.env.UPDATE_SCREENSHOTS);
  if (isUpdate) mkdirSync(PICTURES, { recursive: true });
  await check(isUpdate ? "the pictures are taken" : "the pictures could be taken", async () => {
    const page = await open(browser, service, { size: wide, reducedMotion: "reduce" });
    for (const text of ["add buy milk", "add call the dentist before Thursday", "add write the report"]) {
      await page.getByRole("button", { name: "New conversation" }).click();
      await say(page, text);
      await settled(page, 1);
    }
    await page.getByRole("button", { name: "New conversation" }).click();
    await say(page, "what is open?");
    await settled(page, 1);
    await say(page, "delete write the report");
    await settled(page, 2);
    const shoot = async (name) => {
      await page.evaluate(() => document.fonts.ready);
      const picture = await page.screenshot(isUpdate ? { path: `${PICTURES}${name}.png` } : {});
      assert.ok(picture.length < LARGEST, `${name} has ${picture.length} bytes`);
      if (isUpdate) assert.equal(statSync(`${PICTURES}${name}.png`).size, picture.length);
    };
    await page.waitForFunction(() => document.activeElement?.textContent === "Keep");
    await shoot("light");
    await page.setViewportSize(phone);
    await page.locator(".confirm").scrollIntoViewIfNeeded();
    await shoot("phone");
    await page.setViewportSize(wide);
    await page.emulateMedia({ colorScheme: "dark" });
    await page.locator(".confirm").getByRole("button", { name: "Keep" }).click();
    await settled(page, 2);
    await page.locator(".turn").first().locator(".badge").click();
    await page.locator(".turn").first().getByRole("button", { name: "Show every step" }).click();
    await page.locator(".waterfall").waitFor();
    await page.locator(".waterfall .is-model button").last().click();
    await shoot("dark");
    await page.close();
  });
}

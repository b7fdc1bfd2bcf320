// Edited messages and regenerated answers: all versions are kept, and one can switch between them by mouse, by keyboard
// and on a narrow screen.

import assert from "node:assert/strict";
import { join } from "node:path";
import { check, drawn, last, lines, open, say, serve, settled, violations } from "./harness.mjs";

const SCRIPT = lines(
  { match: "cocoa", text: "Cocoa it is.", repeat: true },
  { match: "hello", text: "Hello.", repeat: true },
  { match: "biscuits", text: "With biscuits.", repeat: true },
  { text: "Tea." },
  { text: "Coffee." },
);

const turnTexts = (page) => page.locator(".turn").evaluateAll((turns) => turns.map((turn) => [turn.querySelector(".bubble").textContent, turn.querySelector(".markdown")?.textContent.trim()].join(" → ")));
const versions = (page) => page.locator(".alternatives").evaluateAll((groups) => groups.map((group) => group.getAttribute("aria-label")));

export async function branches(browser) {
  const service = await serve({ script: SCRIPT });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  const shows = async (...expected) => {
    await page.waitForFunction((label) => document.querySelector(".alternatives")?.getAttribute("aria-label") === label, expected.pop());
    await settled(page);
    assert.deepEqual(await turnTexts(page), expected);
  };
  try {
    await here("regenerate: another answer beside the first", async () => {
      await say(page, "hello");
      await settled(page, 1);
      await say(page, "something hot");
      await settled(page, 2);
      assert.deepEqual(await versions(page), []);
      await last(page).getByRole("button", { name: "Regenerate answer" }).click();
      await shows("hello → Hello.", "something hot → Coffee.", "Version 2 of 2");
    });

    await here("edit: other words in the place of the same message, and nothing is sent before they are", async () => {
      await last(page).hover();
      await last(page).getByRole("button", { name: "Edit message" }).click();
      await page.getByText("Editing a message.").waitFor();
      await page.waitForFunction(() => document.getElementById("composer").value === "something hot" && document.activeElement.id === "composer");
      await page.keyboard.press("Escape");
      await page.getByText("Editing a message.").waitFor({ state: "detached" });
      assert.equal(await page.locator("#composer").inputValue(), "");
      await last(page).getByRole("button", { name: "Edit message" }).click();
      await say(page, "cocoa");
      await shows("hello → Hello.", "cocoa → Cocoa it is.", "Version 3 of 3");
    });

    await here("the way between them, by keys; the focus stays at the message", async () => {
      const focused = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
      await last(page).getByRole("button", { name: "Previous version" }).focus();
      await page.keyboard.press("Enter");
      await shows("hello → Hello.", "something hot → Coffee.", "Version 2 of 3");
      await page.waitForFunction(() => document.activeElement.getAttribute("aria-label") === "Previous version");
      await page.keyboard.press("Enter");
      await shows("hello → Hello.", "something hot → Tea.", "Version 1 of 3");
      await page.waitForFunction(() => document.activeElement.getAttribute("aria-label") === "Next version");
      assert.equal(await last(page).getByRole("button", { name: "Previous version" }).isDisabled(), true);
      assert.equal(await focused(), "Next version");
    });

    await here("what is said next is said in the version that is open, and a reload keeps it", async () => {
      await say(page, "biscuits");
      await settled(page, 3);
      await page.reload();
      await shows("hello → Hello.", "something hot → Tea.", "biscuits → With biscuits.", "Version 1 of 3");
      await page.locator(".turn").nth(1).getByRole("button", { name: "Next version" }).click();
      await shows("hello → Hello.", "something hot → Coffee.", "Version 2 of 3");
      await page.goBack();
      await shows("hello → Hello.", "something hot → Tea.", "biscuits → With biscuits.", "Version 1 of 3");
    });

    await here("the first message can be other words too", async () => {
      await page.locator(".turn").first().hover();
      await page.locator(".turn").first().getByRole("button", { name: "Edit message" }).click();
      await say(page, "hello again");
      await shows("hello again → Hello.", "Version 2 of 2");
    });

    await here("the list and the search have the conversation once; it is renamed and deleted with all its versions", async () => {
      const rows = page.locator(".thread");
      await page.waitForFunction(() => document.querySelector(".versions")?.textContent.startsWith("4"));
      assert.equal(await rows.count(), 1);
      assert.equal(await page.locator(".thread.is-open").count(), 1, "whichever version is open");
      await page.getByRole("button", { name: "Next version" }).first().waitFor();
      await page.getByLabel("Search titles and messages").fill("hello");
      await page.locator(".thread-said").waitFor();
      await drawn(page);
      assert.equal(await rows.count(), 1);
      await page.getByLabel("Search titles and messages").fill("");
      await page.locator(".thread-said").waitFor({ state: "detached" });
      await page.getByRole("button", { name: /^Menu of/ }).click();
      await page.getByRole("button", { name: "Rename", exact: true }).click();
      await page.getByLabel("Title", { exact: true }).fill("Drinks");
      await page.getByLabel("Title", { exact: true }).press("Enter");
      await page.getByRole("heading", { level: 1, name: "Drinks" }).waitFor();
      await page.getByRole("button", { name: "Previous version" }).click();
      await shows("hello → Hello.", "something hot → Tea.", "biscuits → With biscuits.", "Version 1 of 2");
      await page.getByRole("heading", { level: 1, name: "Drinks" }).waitFor();
      await page.getByRole("button", { name: "Menu of Drinks" }).click();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.locator(".ask", { hasText: "with all its 4 versions" }).waitFor();
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, "versions-delete.png") });
      await page.locator(".thread .ask").getByRole("button", { name: "Keep" }).click();
      await page.getByRole("button", { name: "Next version" }).first().click();
      await shows("hello again → Hello.", "Version 2 of 2");
    });

    await here("nothing is in the way of a screen reader, or out of reach on a phone", async () => {
      assert.deepEqual(await violations(page), []);
      await page.setViewportSize({ width: 360, height: 640 });
      await page.getByRole("button", { name: "Previous version" }).click();
      await shows("hello → Hello.", "something hot → Tea.", "biscuits → With biscuits.", "Version 1 of 2");
      assert.deepEqual(await versions(page), ["Version 1 of 2", "Version 1 of 3"]);
      await page.locator(".turn").nth(1).getByRole("button", { name: "Edit message" }).click();
      await page.getByText("Editing a message.").waitFor();
      await drawn(page);
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
      assert.deepEqual(await violations(page), []);
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, "branches-narrow.png") });
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole("button", { name: "Cancel", exact: true }).click();
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, "branches.png") });
    });

    await here("deleted: all versions are gone", async () => {
      await page.getByRole("button", { name: "Menu of Drinks" }).click();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.locator(".thread .ask").getByRole("button", { name: "Delete" }).click();
      await page.getByText("No conversations yet.").waitFor();
      await page.locator(".examples").waitFor();
    });

    await check("nothing broke", () => assert.deepEqual(page.broken, []), page);
  } finally {
    await page.close();
    await service.stop();
  }
}

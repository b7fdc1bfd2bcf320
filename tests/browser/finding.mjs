// Finding one's way: the marks of conversations, search, the sides that can be folded, and the keyboard.

import assert from "node:assert/strict";
import { join } from "node:path";
import { check, drawn, last, lines, open, say, serve, settled, violations } from "./harness.mjs";

const SCRIPT = lines(
  { match: "\"success\":true", text: "Noted." },
  { match: "add ", calls: [{ name: "add_task", args: { description: "{{rest}}" } }] },
  { match: "take your time", text: "Here I am, after a while.", delay_ms: 8000 },
  { match: "garden", text: "## Roses\n\nThe **roses** go to the `south` wall, see [this](https://example.com/)." },
  { text: "I heard you.", repeat: true },
);

const row = (page, title) => page.locator(".thread", { hasText: title });

export async function finding(browser) {
  const service = await serve({ script: SCRIPT });
  const page = await open(browser, service, { panel: null });
  const here = (name, work) => check(`finding: ${name}`, work, page);
  const shot = async (name) => process.env.SCREENSHOTS && page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}.png`) });
  try {
    await here("the right side is closed while there are no tasks, and opens with the first", async () => {
      assert.equal(await page.locator(".panel").isVisible(), false);
      await shot("first-visit");
      await say(page, "add milk");
      await page.locator(".task", { hasText: "milk" }).waitFor();
      await settled(page, 1);
      await page.getByRole("button", { name: "Tasks and trace" }).click();
      assert.equal(await page.locator(".panel").isVisible(), false);
      await page.reload();
      await settled(page, 1);
      assert.equal(await page.locator(".panel").isVisible(), false, "what was chosen is kept");
    });

    await here("the left side is folded and unfolded, by keys too, and that is kept", async () => {
      await page.getByRole("button", { name: "Hide the conversations" }).click();
      assert.equal(await page.locator(".side").isVisible(), false);
      assert.deepEqual(await violations(page), []);
      await shot("folded");
      await page.reload();
      await settled(page, 1);
      assert.equal(await page.locator(".side").isVisible(), false);
      await page.waitForFunction(() => document.querySelector(".chat-head .only-wide"));
      await page.locator("#composer").press("Control+k");
      await page.waitForFunction(() => document.activeElement.type === "search");
      assert.equal(await page.locator(".side").isVisible(), true);
    });

    await here("the conversation has the width that is left, whichever side is there, from a desktop to a phone", async () => {
      const widths = () => page.evaluate(() => [".side", ".chat", ".panel"].map((name) => {
        const { left, right } = document.querySelector(name).getBoundingClientRect();
        return Math.round(Math.max(0, Math.min(right, innerWidth) - Math.max(left, 0)));
      }));
      const open = async (isSide, isPanel) => {
        if (isSide !== (await page.locator(".side").isVisible())) await page.getByRole("button", { name: isSide ? "Show the conversations" : "Hide the conversations" }).click();
        if (isPanel !== (await page.locator(".panel").isVisible())) await page.getByRole("button", { name: "Tasks and trace" }).click();
      };
      for (const [isSide, isPanel, wanted] of [[true, true, [264, 632, 384]], [false, true, [0, 896, 384]], [false, false, [0, 1280, 0]], [true, false, [264, 1016, 0]]]) {
        await open(isSide, isPanel);
        assert.deepEqual(await widths(), wanted, `${isSide} ${isPanel}`);
      }
      // A drawer is still on its way out there, over the conversation.
      for (const [width, chat] of [[900, 636], [390, 390]]) {
        await page.setViewportSize({ width, height: 800 });
        assert.equal((await widths())[1], chat, `${width} px`);
      }
      await page.setViewportSize({ width: 1280, height: 800 });
    });

    await here("a running answer, a question and something new are marks of the list", async () => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await say(page, "take your time");
      await row(page, "take your time").getByRole("img", { name: "an answer is coming" }).waitFor();
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.locator(".examples").waitFor();
      await row(page, "take your time").getByRole("img", { name: "an answer is coming" }).waitFor();
      assert.deepEqual(await violations(page), []);
      await shot("marks-running");
      await row(page, "take your time").getByRole("img", { name: "something new" }).waitFor();
      await shot("marks-unread");
      await row(page, "take your time").locator("a").click();
      await last(page).getByText("Here I am, after a while.").waitFor();
      await row(page, "take your time").getByRole("img").waitFor({ state: "detached" });
      await page.reload();
      await settled(page, 1);
      assert.equal(await page.locator(".thread .dot").count(), 0);
    });

    await here("search: hits come first, passages are plain words, and a hit is opened where it is and marked", async () => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await say(page, "what about the garden?");
      await settled(page, 1);
      for (let turn = 2; turn <= 30; turn += 1) await page.evaluate(async (id) => (await fetch("/v1/chat", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ thread_id: id, message: "go on" }) })).json(), new URL(page.url()).hash.slice(4));
      await page.evaluate(async () => fetch("/v1/chat", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ thread_id: "elsewhere", message: "delete milk" }) }));
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.locator(".examples").waitFor();
      await page.keyboard.press("Control+k");
      await page.keyboard.type("south wall");
      const passage = page.locator(".thread-said").first();
      await passage.waitFor();
      assert.equal((await passage.innerText()).trim(), "Roses The roses go to the south wall, see this.");
      assert.equal(await page.getByText("Waiting for you").count(), 0);
      await page.locator(".thread a").first().click();
      await page.waitForFunction(() => CSS.highlights.get("found")?.size >= 2);
      const found = page.locator(".turn", { hasText: "Roses" });
      assert.equal(await found.count(), 1);
      await page.waitForFunction(() => {
        const { top } = [...document.querySelectorAll(".turn")].find((turn) => turn.textContent.includes("Roses")).getBoundingClientRect();
        return top > 0 && top < innerHeight / 2;
      });
      await shot("found");
      await page.getByRole("button", { name: "New conversation" }).click();
      assert.equal(await page.evaluate(() => CSS.highlights.has("found")), false);
      await page.getByLabel("Search titles and messages").fill("");
    });

    await here("the list is one stop of the Tab key, and the buttons of a message are one", async () => {
      await page.waitForFunction(() => document.querySelectorAll(".thread").length >= 3);
      const stops = () => page.evaluate(() => document.querySelectorAll('.threads a:not([tabindex="-1"]), .threads button:not([tabindex="-1"])').length);
      assert.equal(await stops(), 2, "a conversation and its menu");
      await page.locator(".thread a").first().focus();
      await page.keyboard.press("ArrowDown");
      await page.keyboard.press("ArrowDown");
      const third = await page.locator(".thread a").nth(2).getAttribute("href");
      assert.equal(await page.evaluate(() => document.activeElement.getAttribute("href")), third);
      await page.keyboard.press("ArrowRight");
      assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^Menu of/);
      await page.keyboard.press("ArrowLeft");
      await page.keyboard.press("Enter");
      await page.waitForFunction((href) => location.hash === href, third);
      await settled(page);
      await last(page).locator(".asked-tools [tabindex='0']").focus();
      const name = () => page.evaluate(() => document.activeElement.getAttribute("aria-label"));
      assert.equal(await name(), "Copy message");
      await page.keyboard.press("ArrowRight");
      assert.equal(await name(), "Edit message");
      assert.equal(await last(page).getByRole("toolbar", { name: "Message" }).locator("[tabindex='0']").count(), 1);
      assert.equal(await last(page).getByRole("toolbar", { name: "Answer" }).locator("[tabindex='0']").count(), 1);
      await page.waitForFunction(() => getComputedStyle(document.querySelector(".turn:last-child .asked-tools > *")).opacity === "1");
      assert.deepEqual(await violations(page), []);
    });

    await here("a stranger is told where they are, and whom to ask", async () => {
      const named = await serve({ script: SCRIPT, toml: "[serve]\nrequests_per_minute = 100000\nname = \"The team\"\ncontact = \"ops@example.com\"\n" });
      try {
        const stranger = await open(browser, named, { link: false });
        await stranger.getByRole("heading", { name: "Sign in to The team" }).waitFor();
        assert.equal(await stranger.getByRole("link", { name: "ops@example.com" }).getAttribute("href"), "mailto:ops@example.com");
        assert.equal(await stranger.getByText("adjutant token create").count(), 0);
        assert.deepEqual(await violations(stranger), []);
        if (process.env.SCREENSHOTS) await stranger.screenshot({ path: join(process.env.SCREENSHOTS, "sign-in.png") });
        await stranger.close();
        const known = await open(browser, named);
        await known.locator(".brand", { hasText: "The team" }).waitFor();
        await known.close();
      } finally {
        await named.stop();
      }
    });

    await here("nothing broke", () => assert.deepEqual(page.broken, []));
  } finally {
    await page.close();
    await service.stop();
  }
}

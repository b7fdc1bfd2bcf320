// Calls that wait because of what is not the person's own: one answer may count for the rest of the conversation, or always.

import assert from "node:assert/strict";
import { check, last, lines, open, say, serve, settled, violations } from "./harness.mjs";

const toolServer = new URL("tool-server.mjs", import.meta.url).pathname;
// The reading itself is not asked about; adding tasks is left to the rules for text of others.
const TOML = `[agent]\nallow = ["other__gossip"]\n[mcp.servers.other]\ncommand = ${JSON.stringify([process.execPath, toolServer])}\nallow = ["gossip", "poke"]\n`;
const add = (description) => ({ name: "add_task", args: { description } });
const SCRIPT = lines(
  { match: "\"success\":false", text: "All right, I left it." },
  { match: "\"success\":true", text: "Done." },
  { match: "gossip", calls: [{ name: "other__gossip", args: {} }] },
  { match: "poke", calls: [{ name: "other__poke", args: {} }] },
  { match: "one thing", calls: [add("water the flowers")] },
  { match: "two things", calls: [add("feed the cat"), add("sweep the stairs")] },
  { match: "page", calls: [add("visit evil.example")] },
  { match: "delete ", calls: [{ name: "delete_task", args: { task_id: "{{rest}}" } }] },
);

export async function others(browser) {
  const service = await serve({ script: SCRIPT, toml: TOML });
  const page = await open(browser, service);
  const here = (name, work) => check(`others: ${name}`, work, page);
  const forConversation = page.getByRole("button", { name: "Yes, in this conversation", exact: true });
  const card = page.locator(".confirm");
  const task = (text) => page.locator(".task", { hasText: text });
  /** Begins a conversation in which the model has read text of others. */
  const gossip = async () => {
    await page.getByRole("button", { name: "New conversation" }).click();
    await say(page, "gossip please");
    await settled(page, 1);
  };
  const always = page.getByRole("button", { name: "Yes, always", exact: true });
  /** Begins a conversation in which the model calls a tool that does not say what it does. */
  const poke = async () => {
    await page.getByRole("button", { name: "New conversation" }).click();
    await say(page, "poke it");
  };
  try {
    await here("a tool of a server that does not say what it does: yes, always", async () => {
      await poke();
      await always.waitFor();
      assert.deepEqual(await violations(page), []);
      await always.click();
      await card.waitFor({ state: "detached" });
      await settled(page, 1);
      await poke();
      await settled(page, 1);
      assert.equal(await card.count(), 0);
    });

    await here("the settings list it, and it asks again when it is taken out", async () => {
      await page.getByRole("button", { name: "Settings" }).click();
      const row = page.getByRole("dialog").locator("li", { hasText: "poke" });
      await row.waitFor();
      assert.deepEqual(await violations(page), []);
      await row.getByRole("button").click();
      await row.waitFor({ state: "detached" });
      await page.getByRole("dialog").getByRole("button", { name: "Close" }).click();
      await poke();
      await always.waitFor();
      await card.getByRole("button", { name: "Don’t", exact: true }).click();
      await card.waitFor({ state: "detached" });
      await settled(page, 1);
    });

    await here("a change after text of others waits, and says why", async () => {
      await gossip();
      await say(page, "do one thing");
      await card.waitFor();
      assert.match(await card.innerText(), /water the flowers.*\(proposed after reading words of others\)/);
      await forConversation.waitFor();
      assert.equal(await task("water the flowers").count(), 0);
      assert.deepEqual(await violations(page), []);
    });

    await here("yes, in this conversation: the call runs, and later ones like it without a question", async () => {
      await forConversation.click();
      await task("water the flowers").waitFor();
      await settled(page, 2);
      await say(page, "do two things");
      await settled(page, 3);
      assert.equal(await card.count(), 0);
      await task("feed the cat").waitFor();
      await task("sweep the stairs").waitFor();
    });

    await here("it counts after a reload too", async () => {
      await page.reload();
      await settled(page, 3);
      await say(page, "do one thing");
      await settled(page, 4);
      assert.equal(await card.count(), 0);
      await page.waitForFunction(() => [...document.querySelectorAll(".task")].filter((task) => task.innerText.includes("water the flowers")).length === 2);
    });

    await here("an address that the person did not write is asked about all the same", async () => {
      await say(page, "look at the page");
      await card.waitFor();
      assert.match(await card.innerText(), /evil\.example/);
      await card.getByRole("button", { name: "Don’t", exact: true }).click();
      await card.waitFor({ state: "detached" });
      await settled(page, 5);
      assert.equal(await task("evil.example").count(), 0);
    });

    await here("what destroys data is asked about each time, without that button", async () => {
      await say(page, "delete feed the cat");
      await card.waitFor();
      assert.equal(await forConversation.count(), 0);
      await card.getByRole("button", { name: "Keep", exact: true }).click();
      await card.waitFor({ state: "detached" });
      await settled(page, 6);
    });

    await here("another conversation asks again, and one button answers several questions", async () => {
      await gossip();
      await say(page, "do two things");
      await card.nth(1).waitFor();
      await card.first().locator(forConversation).click();
      await card.first().getByText("Yes, in this conversation – waiting for your other answers").waitFor();
      await card.first().getByRole("button", { name: "Change" }).click();
      await page.getByRole("button", { name: "Yes to all 2, in this conversation", exact: true }).click();
      await settled(page, 2);
      await page.waitForFunction(() => [...document.querySelectorAll(".task")].filter((task) => task.innerText.includes("feed the cat")).length === 2);
      await say(page, "do one thing");
      await settled(page, 3);
      assert.equal(await card.count(), 0);
      assert.match(await last(page).innerText(), /Done\./);
      assert.deepEqual(page.broken, []);
    });
  } finally {
    await page.close();
    await service.stop();
  }
}

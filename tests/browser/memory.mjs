// The memory view beside the conversation: facts seen and edited by the user, in a vault file or in the database.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { check, lines, open, say, serve, settled, violations } from "./harness.mjs";

const LINKS = [
  "[[Plans/The house]], [[the house#Roof & wall|the roof]], ![[Home]] and **[[Home]]**[[Gone]]",
  "[[Gone]][[Home]], [[../outside]], [[#Roof]], `[[Home]]`, \\[[Home]], [x [[Home]] y](https://example.com/)",
  "[a](obsidian://advanced-uri?commandid=app%3Adelete) <obsidian://open?vault=Notes> [[obsidian://new?name=x]] [[javascript:alert(1)|Home]]",
  "| a |\n|---|\n| [[Home\\|at home]] |",
  "```\n[[Home]]\n```",
  "[[defined]] [[1]](https://example.com/cited)\n\n[defined]: https://example.com/defined",
].join("\n\n");
const SCRIPT = lines({ match: "links", text: LINKS, repeat: true }, { text: "I heard you.", repeat: true });
const BIKE = "Ana rides her bike to work";

export async function memory(browser) {
  await inDatabase(browser);
  await inVault(browser);
}

async function inDatabase(browser) {
  const service = await serve({ script: SCRIPT });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  try {
    await here("memory: without a vault, facts are kept in the database, and are there again", async () => {
      await page.getByRole("tab", { name: "Memory" }).click();
      await page.getByText("in the database of this service").waitFor();
      await page.getByLabel("New fact").fill("Josh likes green tea");
      await page.getByLabel("New fact").press("Enter");
      await page.locator(".task-words", { hasText: "Josh likes green tea" }).waitFor();
      await page.reload();
      await page.getByRole("tab", { name: "Memory" }).click();
      await page.locator(".task-words", { hasText: "Josh likes green tea" }).waitFor();
      await page.getByRole("button", { name: "Forget Josh likes green tea" }).click();
      await page.getByText("Nothing is remembered yet.").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.locator(".task-words", { hasText: "Josh likes green tea" }).waitFor();
      assert.deepEqual(await violations(page), []);
    });
  } finally {
    await page.close();
    await service.stop();
  }
}

async function inVault(browser) {
  const vault = mkdtempSync(join(tmpdir(), "adjutant-vault-"));
  mkdirSync(join(vault, ".obsidian"));
  mkdirSync(join(vault, "Plans"));
  writeFileSync(join(vault, "Plans", "The house.md"), "---\naliases: [Home]\n---\n");
  const file = join(vault, "memory", "facts.md");
  const text = () => readFileSync(file, "utf8");
  const service = await serve({ script: SCRIPT, toml: `[vault]\npath = ${JSON.stringify(vault)}\n` });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  const facts = () => page.locator(".task-words").allTextContents();
  try {
    await here("memory: the tab is there, and says that nothing is remembered yet", async () => {
      await page.getByRole("tab", { name: "Memory" }).click();
      await page.getByText("Nothing is remembered yet.").waitFor();
    });
    await here("memory: a fact is added, and stands in the vault", async () => {
      await page.getByLabel("New fact").fill("Josh likes green tea");
      await page.getByLabel("New fact").press("Enter");
      await page.locator(".task-words", { hasText: "Josh likes green tea" }).waitFor();
      assert.match(text(), /Josh likes green tea/);
    });
    await here("memory: it is made important, reworded, forgotten, and that is taken back", async () => {
      await page.getByRole("button", { name: "Important: Josh likes green tea" }).click();
      await page.getByRole("heading", { name: "Important" }).waitFor();
      assert.match(text(), /Josh likes green tea #important/);
      await page.getByRole("button", { name: "Change Josh likes green tea" }).click();
      await page.getByLabel("Fact", { exact: true }).fill("Josh likes black tea");
      await page.getByLabel("Fact", { exact: true }).press("Enter");
      await page.locator(".task-words", { hasText: "black tea" }).waitFor();
      await page.getByRole("button", { name: "Forget Josh likes black tea" }).click();
      await page.getByText("Nothing is remembered yet.").waitFor();
      await page.getByRole("button", { name: "Undo" }).click();
      await page.locator(".task-words", { hasText: "black tea" }).waitFor();
      assert.match(text(), /Josh likes black tea #important/);
    });
    await here("memory: what was changed by hand is shown when it is looked at", async () => {
      writeFileSync(file, text().replace("black tea", "<b>coffee</b>"));
      await page.getByRole("tab", { name: "Tasks" }).click();
      await page.getByRole("tab", { name: "Memory" }).click();
      await page.locator(".task-words", { hasText: "<b>coffee</b>" }).waitFor();
      assert.deepEqual(await facts(), ["Josh likes <b>coffee</b>"]);
      assert.deepEqual(await violations(page), []);
    });
    await here("memory: what was told with a message is shown at its answer, and mended there", async () => {
      await page.getByLabel("New fact").fill(BIKE);
      await page.getByLabel("New fact").press("Enter");
      await page.locator(".task-words", { hasText: BIKE }).waitFor();
      await page.getByRole("tab", { name: "Tasks" }).click();
      await say(page, "how does Ana get to work?");
      await settled(page, 1);
      const recalled = page.locator(".from-memory");
      await recalled.getByRole("button", { name: /from memory/ }).click();
      await recalled.locator(".task-words", { hasText: BIKE }).waitFor();
      await recalled.getByRole("button", { name: `Important: ${BIKE}` }).click();
      await recalled.locator("button[aria-pressed=true]").waitFor();
      assert.match(text(), new RegExp(`${BIKE} #important`));
      await recalled.getByRole("button", { name: `Change ${BIKE}` }).click();
      await recalled.getByLabel("Fact", { exact: true }).fill("Ana takes the train to work");
      await recalled.getByLabel("Fact", { exact: true }).press("Enter");
      await recalled.locator(".task-words", { hasText: "takes the train" }).waitFor();
      assert.match(text(), /Ana takes the train to work #important/);
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, "from-memory.png") });
      await recalled.getByRole("button", { name: "Forget Ana takes the train to work" }).click();
      await recalled.getByRole("button", { name: "Undo" }).click();
      await recalled.locator(".task-words", { hasText: "takes the train" }).waitFor();
      // After a reload the list still shows the text that the model read, with a note that it has changed.
      await page.reload();
      await recalled.getByRole("button", { name: /from memory/ }).click();
      await recalled.getByText("changed or forgotten since").waitFor();
      assert.match(await recalled.textContent(), /Ana rides her bike to work/);
      assert.deepEqual(await violations(page), []);
      await page.getByRole("tab", { name: "Memory" }).click();
      await page.getByRole("button", { name: "Forget Ana takes the train to work" }).click();
    });
    await here("notes: what an answer links to is opened in Obsidian where the vault has it, and nothing else is", async () => {
      await say(page, "links");
      await settled(page, 2);
      const house = `obsidian://open?vault=${encodeURIComponent(basename(vault))}&file=Plans%2FThe%20house`;
      const shown = () => page.locator(".md-note").evaluateAll((links) => links.map((link) => [link.textContent, link.getAttribute("href")]));
      await page.waitForFunction(() => document.querySelectorAll(".md-note").length >= 6);
      assert.deepEqual(await shown(), [["Plans/The house", house], ["the roof", `${house}%23Roof%20%26%20wall`], ["Home", house], ["Home", house], ["Home", house], ["at home", house]]);
      const answer = page.locator(".markdown").last();
      const others = await answer.locator("a:not(.md-note)").evaluateAll((links) => links.map((link) => link.getAttribute("href")));
      assert.deepEqual(others, ["https://example.com/", "https://example.com/defined", "https://example.com/cited"]);
      const words = await answer.textContent();
      for (const plain of ["[[Gone]]", "[[../outside]]", "[[#Roof]]", "[[Home]]", "x [[Home]] y", "[[obsidian://new?name=x]]", "[[javascript:alert(1)|Home]]"]) assert.ok(words.includes(plain), plain);
      assert.deepEqual(await violations(page), []);
    });
    await here("memory: a problem is told, and nothing is lost", async () => {
      rmSync(vault, { recursive: true });
      await page.getByLabel("New fact").fill("Josh has a cat");
      await page.getByLabel("New fact").press("Enter");
      await page.getByRole("alert").getByText("nothing was changed").first().waitFor();
      assert.equal(await page.getByLabel("New fact").inputValue(), "Josh has a cat");
    });
  } finally {
    await page.close();
    await service.stop();
    rmSync(vault, { recursive: true, force: true });
  }
}

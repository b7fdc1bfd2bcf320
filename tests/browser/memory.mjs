// What is remembered, beside the conversation: seen and changed by hand, in the vault's own file.

import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check, lines, open, serve, violations } from "./harness.mjs";

const SCRIPT = lines({ text: "I heard you.", repeat: true });

export async function memory(browser) {
  const vault = mkdtempSync(join(tmpdir(), "adjutant-vault-"));
  mkdirSync(join(vault, ".obsidian"));
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

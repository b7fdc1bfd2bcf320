// The operator's view of the service: visible to operators only, and without any text of a conversation.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { check, lines, open, say, serve, settled, violations } from "./harness.mjs";

const SCRIPT = lines(
  { config: { retries: 0 } },
  { match: "trouble", fault: "server", repeat: true },
  { text: "I heard you.", repeat: true, usage: { input: 812, output: 41 } },
);
const TOML = "[budget]\neveryone_per_day_tokens = 100000\n";
const SECRET = "zanzibar";

/** Creates a token for another user, with the command line. */
function tokenOf(service, user) {
  const folder = (name) => join(service.home, name);
  const env = { PATH: process.env.PATH, HOME: service.home, XDG_CONFIG_HOME: folder("config"), XDG_DATA_HOME: folder("data"), XDG_STATE_HOME: folder("state"), XDG_CACHE_HOME: folder("cache") };
  const made = spawnSync(process.env.ADJUTANT_BIN, ["token", "create", "--user", user, "--json"], { env, encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  return JSON.parse(made.stdout).token;
}

export async function operation(browser) {
  for (const [name, options] of Object.entries({
    operation: {},
    "operation, dark": { theme: "dark" },
    "operation, phone": { size: { width: 360, height: 740 }, hasTouch: true, locale: "de-DE" },
  })) {
    const service = await serve({ script: SCRIPT, toml: TOML });
    try {
      await tour(browser, service, name, options);
    } finally {
      await service.stop();
    }
  }
}

async function tour(browser, service, name, options) {
  const anna = { ...service, token: tokenOf(service, "anna") };
  const theirs = await open(browser, anna, options);
  await say(theirs, `there is trouble with ${SECRET}`);
  await settled(theirs, 1);
  await say(theirs, "hello");
  await settled(theirs, 2);
  await check(`${name}: who does not run the service has no such view`, async () => {
    assert.equal(await theirs.locator("#tab-operation").count(), 0);
    const refused = await theirs.evaluate(async () => (await fetch("/v1/admin/overview")).status);
    assert.equal(refused, 403);
  });
  await theirs.close();

  const page = await open(browser, service, options);
  const here = (what, work) => check(`${name}: ${what}`, work, page);
  const isGerman = options.locale === "de-DE";
  const word = (english, german) => (isGerman ? german : english);
  const view = (title) => page.locator(".views").getByRole("button", { name: title });
  const look = async () => {
    assert.deepEqual(await violations(page), []);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, `the page is ${over} px wider than the screen`);
    assert.ok(!(await page.locator(".panel").innerText()).includes(SECRET), "what was said is shown");
  };
  try {
    await here("turns, errors, money, budgets and processes at a glance", async () => {
      if (options.hasTouch) await page.getByRole("button", { name: word("Tasks and trace", "Aufgaben und Protokoll") }).click();
      await page.locator("#tab-operation").click();
      await page.locator(".operation .totals").waitFor();
      const text = await page.locator(".operation").innerText();
      for (const words of ["server", "scripted", "adjutant 0."]) assert.ok(text.includes(words), `${words}: ${text}`);
      assert.equal(await page.locator("meter").count(), 1);
      await look();
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name.replace(/\W+/g, "-")}.png`) });
    });
    await here("the failed turn, whose it is, its error, its request and the commands that show its cause", async () => {
      await view(word("Turns", "Runden")).click();
      await page.locator(".decisions button").first().waitFor();
      assert.equal(await page.locator(".decisions button").count(), 1);
      assert.match(await page.locator(".decisions").innerText(), /anna[\s\S]*server/);
      await look();
      await page.locator(".decisions button").click();
      await page.locator(".detail .steps").waitFor();
      const text = await page.locator(".detail").innerText();
      assert.match(text, /adjutant log show --request \S+/);
      assert.match(text, /adjutant log show [0-9a-f-]{36}/);
      await look();
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name.replace(/\W+/g, "-")}-turn.png`) });
      const request = text.match(/--request (\S+)/)[1];
      await page.getByRole("button", { name: word("Back to the list", "Zurück zur Liste") }).click();
      await page.locator("#request").fill(request);
      await page.locator("#request").press("Enter");
      await page.locator(".decisions button").first().waitFor();
      assert.equal(await page.locator(".decisions button").count(), 1);
      await page.locator("#request").fill("no-such-request");
      await page.locator("#request").press("Enter");
      await page.locator(".nothing").waitFor();
      await page.locator("#request").fill("");
      await page.locator("#request").press("Enter");
      await page.locator(".filters select").first().selectOption("all");
      await page.locator(".decisions li").nth(1).waitFor();
    });
    await here("people and questions", async () => {
      await view(word("Users", "Personen")).click();
      await page.locator(".decisions li").first().waitFor();
      assert.match(await page.locator(".decisions").innerText(), /anna/);
      await look();
      await view(word("Questions", "Rückfragen")).click();
      await page.locator(".nothing").waitFor();
      await look();
    });
    await here("the keys lead through all tabs", async () => {
      await page.locator("#tab-operation").focus();
      for (const [key, id] of [["ArrowRight", "tab-tasks"], ["ArrowLeft", "tab-operation"], ["ArrowLeft", "tab-memory"]]) {
        await page.keyboard.press(key);
        await page.waitForFunction((id) => document.activeElement.id === id, id);
        assert.equal(await page.locator(`#${id}`).getAttribute("aria-selected"), "true");
      }
    });
    await here("the looks are told in the service's log", async () => {
      await service.says(/an operator looked at a turn .*operator=local owner=anna turn=[0-9a-f-]{36} words=false/);
    });
    assert.deepEqual(page.broken, []);
  } finally {
    await page.close();
  }
}

// Ratings of answers: given by a click, stored by the service, withdrawn, and given with a reason.

import assert from "node:assert/strict";
import { join } from "node:path";
import { check, drawn, last, lines, open, say, serve, settled, violations } from "./harness.mjs";

const SCRIPT = lines(
  { config: { retries: 0 } },
  { match: "delete ", calls: [{ name: "delete_task", args: { task_id: "{{rest}}" } }] },
  { match: "add ", calls: [{ name: "add_task", args: { description: "{{rest}}" } }] },
  { match: "\"success\":", text: "Done." },
  { match: "trouble", fault: "server" },
  { text: "It is on Tuesday.", repeat: true },
);

/** Returns the rating that the service has stored for the last answer. */
const kept = (page) =>
  page.evaluate(async () => {
    const id = location.hash.split("/").at(-1);
    const { messages } = await (await fetch(`/v1/threads/${id}/messages`)).json();
    return messages.at(-1).feedback ?? null;
  });

export async function feedback(browser) {
  for (const [name, options] of Object.entries({ feedback: {}, "feedback, dark phone": { theme: "dark", size: { width: 360, height: 740 }, hasTouch: true, locale: "de-DE" } })) {
    const service = await serve({ script: SCRIPT });
    try {
      await tour(browser, service, name, options);
    } finally {
      await service.stop();
    }
  }
}

async function tour(browser, service, name, options) {
  const page = await open(browser, service, options);
  const here = (what, work) => check(`${name}: ${what}`, work, page);
  const word = (english, german) => (options.locale === "de-DE" ? german : english);
  const button = (title) => last(page).getByRole("button", { name: title, exact: true });
  const good = () => button(word("Good answer", "Gute Antwort"));
  const bad = () => button(word("Bad answer", "Schlechte Antwort"));
  const what = word("What was wrong?", "Was war falsch?");
  const field = () => last(page).getByRole("textbox", { name: what });
  const pressed = async () => [await good().getAttribute("aria-pressed"), await bad().getAttribute("aria-pressed")];
  /** Clicks, and waits until the service has stored the rating. */
  const rate = async (work, method = "PUT") => {
    const answered = page.waitForResponse((response) => response.url().endsWith("/feedback") && response.request().method() === method);
    await work();
    assert.equal((await answered).status(), 204);
    await drawn(page);
  };
  const looked = async (state) => {
    assert.deepEqual(await violations(page), [], state);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), state);
    if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name}-${state}.png`.replaceAll(" ", "-")) });
  };
  try {
    await here("good, and taken back; it is there after a reload", async () => {
      await say(page, "when is it?");
      await settled(page, 1);
      assert.deepEqual(await pressed(), ["false", "false"]);
      await rate(() => good().click());
      assert.deepEqual(await pressed(), ["true", "false"]);
      assert.equal(await field().count(), 0);
      assert.deepEqual(await kept(page), { rating: "up" });
      await looked("good");
      await page.reload();
      await settled(page, 1);
      assert.deepEqual(await pressed(), ["true", "false"]);
      await rate(() => good().click(), "DELETE");
      assert.deepEqual(await pressed(), ["false", "false"]);
      assert.equal(await kept(page), null);
    });

    await here("bad: kept at once, Escape leaves the field, and a reason is kept with it", async () => {
      await rate(() => bad().click());
      await field().waitFor();
      await page.waitForFunction(() => document.activeElement.tagName === "TEXTAREA" && document.activeElement.id !== "composer");
      assert.deepEqual(await kept(page), { rating: "down" });
      await looked("bad");
      await page.keyboard.press("Escape");
      await field().waitFor({ state: "detached" });
      assert.equal(await page.evaluate(() => document.activeElement.textContent), what);
      assert.deepEqual(await pressed(), ["false", "true"]);
      await page.keyboard.press("Enter");
      const reason = "It is on Wednesday. <b>Look</b> 👩‍👩‍👧‍👦";
      await field().fill(reason);
      await rate(() => last(page).locator(".reason button[type=submit]").click());
      await field().waitFor({ state: "detached" });
      assert.deepEqual(await kept(page), { rating: "down", comment: reason });
      await page.reload();
      await settled(page, 1);
      await button(what).click();
      assert.equal(await field().inputValue(), reason);
      await page.keyboard.press("Escape");
    });

    await here("the other one takes its place, with the reason", async () => {
      await rate(() => good().click());
      assert.deepEqual(await pressed(), ["true", "false"]);
      assert.deepEqual(await kept(page), { rating: "up" });
    });

    await here("what the service refuses is not shown as kept", async () => {
      await page.route("**/feedback", (route) => route.fulfill({ status: 503, contentType: "application/problem+json", body: JSON.stringify({ title: "Not available", status: 503, code: "unavailable", detail: "away" }) }));
      await good().click();
      await page.locator(".below .problem").waitFor();
      assert.deepEqual(await pressed(), ["true", "false"]);
      await page.unroute("**/feedback");
      await page.locator(".below .problem button").first().click();
    });

    await here("only what was answered can be rated", async () => {
      await say(page, "add milk");
      await settled(page, 2);
      await say(page, "delete milk");
      await last(page).locator(".confirm").waitFor();
      assert.equal(await good().count(), 0);
      await page.locator(".confirm .is-plain").click();
      await settled(page, 3);
      await good().waitFor();
      await say(page, "there is trouble");
      await settled(page, 4);
      assert.equal(await good().count(), 0);
      assert.deepEqual(page.broken, []);
    });
  } finally {
    await page.close();
  }
}

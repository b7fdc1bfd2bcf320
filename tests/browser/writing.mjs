// The message field: keys of input methods, long texts and what they cost, and what is said about them before they are sent.

import assert from "node:assert/strict";
import { check, drawn, lines, open, say, serve, settled } from "./harness.mjs";

const SCRIPT = lines({ text: "I heard you.", repeat: true });
const LINES = Array.from({ length: 20_000 }, (_, at) => `line ${at} of the pasted code; const x = ${at};`).join("\n");

/** Puts a text into a field as a paste does, and returns the milliseconds until it is drawn. */
const put = (page, selector, text) =>
  page.evaluate(([selector, text]) => {
    const field = document.querySelector(selector);
    field.focus();
    const begin = performance.now();
    field.value = text;
    field.dispatchEvent(new InputEvent("input", { bubbles: true }));
    return new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now() - begin))));
  }, [selector, text]);

/** Counts what a key may not cost in a long text: looks at its layout, and writes into the browser's store. */
const count = (page) =>
  page.evaluate(() => {
    const seen = (window.seen = { layouts: 0, stored: 0, values: 0 });
    const field = document.getElementById("composer");
    for (const [name, owner, key] of [["layouts", Element.prototype, "scrollHeight"], ["values", HTMLTextAreaElement.prototype, "value"]]) {
      const { get, set } = Object.getOwnPropertyDescriptor(owner, key);
      Object.defineProperty(field, key, { configurable: true, set, get() { seen[name] += 1; return get.call(this); } });
    }
    const { setItem } = Storage.prototype;
    Storage.prototype.setItem = function (...given) { seen.stored += 1; return setItem.apply(this, given); };
  });

export async function writing(browser) {
  const service = await serve({ script: SCRIPT });
  const page = await open(browser, service);
  const here = (name, work) => check(`writing: ${name}`, work, page);
  const composer = page.locator("#composer");
  try {
    await here("Enter of an input method does not send, in the order of any browser", async () => {
      const enter = (options) => page.evaluate((options) => document.getElementById("composer").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true, ...options })), options);
      await composer.fill("にほんご");
      await enter({ isComposing: true });
      // Safari ends the composition first.
      await enter({ keyCode: 229 });
      await drawn(page);
      assert.equal(await page.locator(".turn").count(), 0);
      assert.equal(await composer.inputValue(), "にほんご");
      await enter({ keyCode: 13 });
      await settled(page, 1);
    });

    await here("20,000 lines: nothing of them is looked at with a key, and they cost what a bare field costs", async () => {
      await page.evaluate(() => {
        const bare = document.createElement("textarea");
        bare.id = "bare";
        bare.style.cssText = "position:fixed;inset:0 auto auto 0;width:600px;height:300px;z-index:99;font:16px/1.5 sans-serif";
        document.body.append(bare);
      });
      const bare = await put(page, "#bare", LINES);
      await page.evaluate(() => document.getElementById("bare").remove());
      await count(page);
      const own = await put(page, "#composer", LINES);
      console.log(`      20,000 lines: ${Math.round(bare)} ms in a bare field, ${Math.round(own)} ms here`);
      assert.equal(await composer.getAttribute("dir"), "ltr", "the browser is not asked for the direction of all of it");
      assert.deepEqual(await page.evaluate(() => [window.seen.layouts, window.seen.stored]), [0, 0]);
      // The remark about it comes when the person pauses.
      await page.locator("#composer-hint", { hasText: /only the first 100,000 will be read/ }).waitFor();
      await page.evaluate(() => Object.assign(window.seen, { layouts: 0, stored: 0, values: 0 }));
      await composer.press("End");
      await page.keyboard.type("abcde");
      assert.equal((await page.evaluate(() => window.seen)).layouts, 0);
      const { stored, values } = await page.evaluate(() => window.seen);
      assert.ok(stored <= 1 && values <= 2, `${stored} writes and ${values} readings`);
      const box = await composer.boundingBox();
      const form = await page.locator(".composer").boundingBox();
      assert.ok(box.width > form.width * 0.8, "what is said does not take the room of the text");
    });

    await here("a long draft is kept, as far as drafts are, when the page is left; and it is gone when it is sent", async () => {
      const text = `${"many words ".repeat(1_500)}the end`;
      await composer.fill(text);
      await page.reload();
      await page.waitForFunction((text) => document.getElementById("composer")?.value === text, text);
      await say(page, text);
      await settled(page, 2);
      await page.waitForFunction(() => document.getElementById("composer").value === "");
      assert.equal(await page.locator(".bubble").last().innerText(), text);
      await page.reload();
      await settled(page, 2);
      assert.equal(await composer.inputValue(), "");
    });

    await here("from 20,000 tokens on its size is said, and its price if there is one", async () => {
      const hint = page.locator("#composer-hint");
      await composer.fill("x".repeat(79_000));
      await page.waitForFunction(() => document.querySelector(".composer .round:not(:disabled)"));
      assert.doesNotMatch(await hint.innerText(), /tokens/);
      await composer.fill("x".repeat(88_000));
      await hint.getByText(/^About 22k tokens for the model to read/i).waitFor();
      await page.route("**/v1/me", async (route) => {
        const response = await route.fetch();
        await route.fulfill({ response, json: { ...(await response.json()), input_usd_per_million: 3 } });
      });
      await page.reload();
      await page.waitForSelector("#composer");
      await composer.fill("x".repeat(88_000));
      await hint.getByText(/22k tokens: the model reads them for about \$0\.07/i).waitFor();
      await composer.fill("");
      await page.waitForFunction(() => document.getElementById("composer-hint").className === "only-heard");
    });

    await here("the direction is that of the first letter", async () => {
      for (const [text, direction] of [["123 שלום", "rtl"], ["hello שלום", "ltr"], ["مرحبا", "rtl"], ["", "ltr"]]) {
        await composer.fill(text);
        await page.waitForFunction((direction) => document.getElementById("composer").dir === direction, direction);
      }
    });

    await here("nothing broke", () => assert.deepEqual(page.broken, []));
  } finally {
    await page.close();
    await service.stop();
  }
}

// The page shows changes by other tabs, devices and programs, and notices a connection that went silent.

import assert from "node:assert/strict";
import { check, drawn, last, lines, open, say, serve, settled, wire } from "./harness.mjs";

const SCRIPT = lines(
  { match: "\"deleted\":true", text: "It is gone." },
  { match: "\"success\":false", text: "All right, I left it." },
  { match: "\"success\":true", text: "Noted." },
  { match: "add ", calls: [{ name: "add_task", args: { description: "{{rest}}" } }] },
  { match: "delete ", calls: [{ name: "delete_task", args: { task_id: "{{rest}}" } }] },
  { match: "wait for it", text: "It was worth the wait.", delay_ms: 3000 },
  { text: "I heard you.", repeat: true },
);

const bubbles = (page) => page.locator(".bubble").allTextContents();
/** Waits until the page shows these messages, in this order. */
const shows = (page, ...texts) =>
  page.waitForFunction((texts) => JSON.stringify([...document.querySelectorAll(".bubble")].map((bubble) => bubble.textContent)) === texts, JSON.stringify(texts));
/** Makes the page believe that it is looked at again. */
const lookedAt = (page) => page.evaluate(() => dispatchEvent(new Event("focus")));

export async function live(browser) {
  const service = await serve({ script: SCRIPT });
  const one = await open(browser, service);
  const here = (name, work) => check(`live: ${name}`, work, one);
  try {
    await say(one, "hello from one");
    await settled(one, 1);
    const two = await open(browser, service, { beside: one, link: false, base: service.url });
    const phone = await open(browser, service, { size: { width: 390, height: 800 } });

    await here("two tabs: each shows what was said in the other", async () => {
      await two.goto(one.url());
      await two.reload();
      await settled(two, 1);
      await say(two, "hello from two");
      await settled(two, 2);
      await shows(one, "hello from one", "hello from two");
      await settled(one, 2);
      await say(one, "hello third");
      await shows(two, "hello from one", "hello from two", "hello third");
    });

    await here("another device: shown when the page is looked at again, and after the next answer in any case", async () => {
      await phone.goto(one.url());
      await phone.reload();
      await settled(phone, 3);
      await say(phone, "from the phone");
      await settled(phone, 4);
      assert.equal((await bubbles(one)).length, 3);
      await lookedAt(one);
      await shows(one, "hello from one", "hello from two", "hello third", "from the phone");
      // Without a look in between, the events of the next answer say that there is more.
      await say(phone, "from the phone again");
      await settled(phone, 5);
      await say(one, "and here");
      await shows(one, "hello from one", "hello from two", "hello third", "from the phone", "from the phone again", "and here");
      await settled(one, 6);
    });

    await here("a look at what is as it was reads no messages anew", async () => {
      await lookedAt(one);
      await one.waitForResponse((response) => response.url().includes("/messages?limit=1"));
      const asked = one.asked.length;
      await lookedAt(one);
      await one.waitForResponse((response) => response.url().includes("/v1/pending"));
      const again = one.asked.slice(asked).filter((url) => /\/messages$|\/branches|\/decisions/.test(url));
      assert.deepEqual(again, []);
    });

    await here("an answered question is offered nowhere else, and a task that was added is there", async () => {
      await say(one, "add milk");
      await settled(one, 7);
      await say(one, "delete milk");
      await one.locator(".confirm").waitFor();
      await two.locator(".confirm").waitFor();
      await two.getByRole("button", { name: "Keep", exact: true }).click();
      await one.locator(".confirm").waitFor({ state: "detached" });
      assert.match(await last(one).innerText(), /Not done: Delete “milk”/);
      await two.fill("#new-task", "from the other tab");
      await two.press("#new-task", "Enter");
      await one.locator(".task", { hasText: "from the other tab" }).waitFor();
    });

    await here("a question that was answered on another device and is answered here too: it is shown as it was answered", async () => {
      await say(one, "delete milk");
      await one.locator(".confirm").waitFor();
      await phone.evaluate(() => dispatchEvent(new Event("focus")));
      await phone.locator(".confirm").getByRole("button", { name: "Keep", exact: true }).click();
      await phone.locator(".confirm").waitFor({ state: "detached" });
      await settled(phone);
      await one.locator(".confirm").getByRole("button", { name: "Delete", exact: true }).click();
      await one.locator(".confirm").waitFor({ state: "detached" });
      await settled(one);
      await last(one).getByText("Not done: Delete “milk”").waitFor();
      assert.equal(await one.locator(".task", { hasText: "milk" }).count(), 1);
    });

    await here("a conversation that was deleted elsewhere is gone", async () => {
      await two.getByRole("button", { name: "New conversation" }).click();
      await say(two, "short-lived");
      await settled(two, 1);
      await one.locator(".thread", { hasText: "short-lived" }).locator("a").click();
      await settled(one, 1);
      await two.getByRole("button", { name: "Menu of short-lived" }).click();
      await two.getByRole("button", { name: "Delete…" }).click();
      await two.locator(".thread .ask").getByRole("button", { name: "Delete" }).click();
      await one.locator(".below .problem").getByText("This conversation does not exist").waitFor();
      await one.locator(".thread", { hasText: "short-lived" }).waitFor({ state: "detached" });
      for (const page of [one, two, phone]) assert.deepEqual(page.broken, []);
    });
    await phone.close();
    await two.close();

    for (const [what, pass] of [
      ["45 seconds of silence", (page) => page.clock.fastForward(46_000)],
      ["a return to the page after 20 silent seconds", async (page) => {
        const now = await page.evaluate(() => Date.now());
        await page.clock.setSystemTime(now + 21_000);
        await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
      }],
    ]) {
      const cable = await wire(service.url);
      const far = await open(browser, service, { base: cable.url });
      await check(`live: ${what}: the connection is lost, and the answer is there without a reload`, async () => {
        await far.clock.install();
        const begun = far.waitForResponse((response) => response.url().endsWith("/v1/runs"));
        await say(far, "wait for it");
        await begun;
        cable.hush();
        await one.goto(`${service.url}/${new URL(far.url()).hash}`);
        await one.reload();
        await one.locator("main").getByText("It was worth the wait.").waitFor();
        const words = far.locator("main").getByText("It was worth the wait.");
        assert.equal(await words.count(), 0);
        // The browser may take another connection of those that are silent first.
        while ((await words.count()) === 0) {
          await pass(far);
          await drawn(far);
        }
        await settled(far, 1);
        assert.deepEqual(await bubbles(far), ["wait for it"]);
        assert.deepEqual(far.broken, []);
      }, far);
      await far.close();
      await cable.stop();
    }
  } finally {
    await one.close();
    await service.stop();
  }
}

// The frame of the page: settings, the menu of conversations, notifications while the page is in the background, and
// the other pages.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { check, lines, moduleOf, open, say, serve, settled, violations } from "./harness.mjs";

const SCRIPT = lines(
  { match: "\"success\":true", text: "Noted." },
  { match: "add ", calls: [{ name: "add_task", args: { description: "{{rest}}" } }] },
  { match: "delete all", calls: ["one", "two", "three"].map((task_id) => ({ name: "delete_task", args: { task_id } })) },
  { match: "delete ", calls: [{ name: "delete_task", args: { task_id: "{{rest}}" } }] },
  { text: "I heard you.", repeat: true },
);

/** Replaces the browser's notifications by a recording, so that they can be read and clicked. */
const NOTIFIER = `
  window.notified = [];
  window.Notification = class {
    static permission = "default";
    static async requestPermission() { window.notified.push("asked"); return (this.permission = "granted"); }
    constructor(title, options) { window.notified.push({ title, ...options }); window.lastNote = this; }
    close() {}
  };
`;
/** Makes the page believe that it is in the background. */
const looks = (page, isSeen) => page.evaluate((isSeen) => {
  Object.defineProperty(document, "hidden", { configurable: true, get: () => !isSeen });
  document.hasFocus = () => isSeen;
  document.dispatchEvent(new Event("visibilitychange"));
}, isSeen);

export async function shell(browser) {
  const service = await serve({ script: SCRIPT });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  const settings = async (page) => {
    await page.getByRole("button", { name: /^(Settings|Einstellungen)$/ }).click();
    await page.getByRole("dialog").waitFor();
  };
  const paper = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  try {
    await here("theme: chosen, kept, there before the page's modules are; the system's again", async () => {
      const light = await paper(page);
      await settings(page);
      await page.getByLabel("Colours").selectOption("dark");
      const dark = await paper(page);
      assert.notEqual(dark, light);
      assert.deepEqual(await violations(page), []);
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => !document.querySelector("dialog"));
      // Without the modules, the page stays in the state that it shows while they load.
      await page.route("**/web/*/app.js", (route) => route.abort());
      await page.reload();
      assert.equal(await paper(page), dark);
      await page.unroute("**/web/*/app.js");
      await page.reload();
      await page.waitForSelector("#composer");
      assert.deepEqual(await page.locator('meta[name="theme-color"]').evaluateAll((all) => all.map(({ content }) => content)), ["#171614", "#171614"]);
      await settings(page);
      await page.getByLabel("Colours").selectOption("system");
      assert.equal(await paper(page), light);
      await page.keyboard.press("Escape");
    });

    await here("language: all of the page at once, the focus stays, and it is kept", async () => {
      await settings(page);
      await page.getByLabel("Language").selectOption("de");
      await page.getByRole("heading", { name: "Einstellungen" }).waitFor();
      await page.waitForFunction(() => document.activeElement?.id === "settings-language");
      assert.equal(await page.evaluate(() => document.documentElement.lang), "de");
      assert.deepEqual(await violations(page), []);
      await page.reload();
      await page.waitForSelector("#composer");
      await page.getByRole("button", { name: "Neue Unterhaltung" }).waitFor();
      await settings(page);
      await page.getByLabel("Sprache").selectOption("");
      await page.getByRole("heading", { name: "Settings" }).waitFor();
      await page.keyboard.press("Escape");
    });

    await here("where nothing may be stored, a choice holds until the page is closed", async () => {
      const other = await open(browser, service, { link: false });
      await other.addInitScript(() => Object.defineProperty(window, "localStorage", { get() { throw new DOMException("no", "SecurityError"); } }));
      await other.goto(`${service.url}/?token=${service.token}`);
      await other.waitForSelector("#composer");
      const light = await paper(other);
      await settings(other);
      await other.getByLabel("Colours").selectOption("dark");
      assert.notEqual(await paper(other), light);
      await other.getByLabel("Language").selectOption("de");
      await other.getByRole("heading", { name: "Einstellungen" }).waitFor();
      assert.deepEqual(other.broken, []);
      await other.close();
    });

    await here("a conversation is saved as a file, as Markdown and as JSON", async () => {
      for (const task of ["one", "two", "three"]) await say(page, `add ${task}`).then(() => settled(page));
      for (const [item, name, words] of [["Save as Markdown", "add one.md", /^# add one\n[^]*> add one\n[^]*> Noted\./], ["Save as JSON", "add one.json", /^\{"id":/]]) {
        await page.getByRole("button", { name: "Menu of add one" }).click();
        const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: item }).click()]);
        assert.equal(download.suggestedFilename(), name);
        assert.match(readFileSync(await download.path(), "utf8"), words);
      }
    });

    await here("pins: at the top, kept, and gone with the conversation", async () => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await say(page, "hello!");
      await settled(page, 1);
      await say(page, "what about the weather?");
      await settled(page, 2);
      // A greeting does not become the conversation's title.
      await page.locator(".thread.is-open", { hasText: "what about the weather?" }).waitFor();
      await page.getByRole("button", { name: "Menu of add one" }).click();
      await page.getByRole("button", { name: "Pin", exact: true }).click();
      const first = () => page.locator(".threads section").first();
      assert.match(await first().innerText(), /^Pinned\s+add one/);
      await page.reload();
      await page.waitForSelector("#composer");
      await first().getByText("add one").waitFor();
      assert.match(await first().innerText(), /^Pinned/);
      assert.equal(await page.getByRole("link", { name: "add one" }).count(), 1);
      assert.deepEqual(await violations(page), []);
      await page.getByRole("button", { name: "Menu of add one" }).click();
      await page.getByRole("button", { name: "Unpin", exact: true }).click();
      assert.doesNotMatch(await first().innerText(), /Pinned/);
    });

    await here("pins: one that the list leaves out, renamed elsewhere and here", async () => {
      const call = (method, path, body) =>
        page.evaluate(async ([method, path, body]) => {
          const response = await fetch(path, { method, headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
          return response.status === 204 ? null : response.json();
        }, [method, path, body]);
      const { thread_id } = await call("POST", "/v1/chat", { message: "an old talk" });
      for (let at = 0; at < 40; at += 1) await call("POST", "/v1/chat", { message: `a later talk ${at}` });
      const other = await open(browser, service);
      await other.clock.install();
      const pinned = other.locator(".threads section").first();
      await other.evaluate(async ([pins, id]) => (await import(pins)).pin({ thread_id: id }, true), [await moduleOf(other, "pins.js"), thread_id]);
      await pinned.getByText("an old talk").waitFor();
      await call("PATCH", `/v1/threads/${thread_id}`, { title: "named elsewhere" });
      await other.clock.fastForward(61_000);
      await other.evaluate(async (actions) => (await import(actions)).loadThreads(), await moduleOf(other, "actions/threads.js"));
      await pinned.getByText("named elsewhere").click();
      await other.getByRole("heading", { level: 1, name: "named elsewhere" }).waitFor();
      await other.getByRole("button", { name: "Menu of named elsewhere" }).click();
      await other.getByRole("button", { name: "Rename", exact: true }).click();
      await other.keyboard.type("named here");
      await other.keyboard.press("Enter");
      await pinned.getByText("named here").waitFor();
      assert.deepEqual(other.broken, []);
      await other.close();
    });

    await here("three questions at once are told as one, and answered as one", async () => {
      await page.getByRole("link", { name: "add one" }).click();
      await settled(page, 3);
      await say(page, "delete all");
      await settled(page, 4);
      await page.getByRole("heading", { name: "3 questions are waiting for you" }).waitFor();
      assert.deepEqual(await violations(page), []);
      await page.setViewportSize({ width: 320, height: 640 });
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      assert.deepEqual(await violations(page), []);
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.getByRole("button", { name: "Keep all 3" }).click();
      await settled(page, 4);
    });

    await here("notifications: asked for by a click, told only to who looks elsewhere, and a click leads there", async () => {
      const other = await open(browser, service, { link: false });
      await other.addInitScript(NOTIFIER);
      await other.goto(`${service.url}/?token=${service.token}`);
      await other.waitForSelector("#composer");
      const notified = () => other.evaluate(() => window.notified);
      await say(other, "add four");
      await settled(other, 1);
      assert.deepEqual(await notified(), [], "nobody is asked without a click");
      await settings(other);
      await other.getByLabel("Notify me").click();
      await other.getByText("Only while you are not looking at this page.", { exact: true }).waitFor();
      assert.deepEqual(await notified(), ["asked"]);
      await other.keyboard.press("Escape");
      await say(other, "add five");
      await settled(other, 2);
      assert.deepEqual(await notified(), ["asked"], "who looks needs no notification");
      await looks(other, false);
      await say(other, "delete five");
      await other.waitForFunction(() => window.notified.length === 2);
      const [, question] = await notified();
      assert.deepEqual([question.title, question.body], ["A question for you", "Delete “five”"]);
      assert.match(await other.title(), /^● Question – add four/);
      const asked = other.url();
      await other.evaluate(() => document.querySelector(".new").click());
      await other.locator(".examples").waitFor();
      await other.evaluate(() => window.lastNote.onclick());
      await other.locator(".confirm").waitFor();
      assert.equal(other.url(), asked);
      await looks(other, true);
      await other.waitForFunction(() => !document.title.startsWith("●"));
      assert.deepEqual(other.broken, []);
      await other.close();
    });

    await here("installable: a manifest with icons that are there, and nothing that answers in the service's place", async () => {
      const { href } = await page.evaluate(() => ({ href: document.querySelector('link[rel="manifest"]').href }));
      const manifest = await (await page.request.get(href)).json();
      for (const { src, type } of manifest.icons) {
        const icon = await page.request.get(new URL(src, href).href);
        assert.deepEqual([icon.status(), icon.headers()["content-type"]], [200, type], src);
      }
      const session = await page.context().newCDPSession(page);
      const { errors } = await session.send("Page.getAppManifest");
      assert.deepEqual(errors, []);
      const { installabilityErrors } = await session.send("Page.getInstallabilityErrors");
      assert.deepEqual(installabilityErrors.filter(({ errorId }) => errorId !== "in-incognito"), []);
      assert.equal(await page.evaluate(async () => (await navigator.serviceWorker.getRegistrations()).length), 0);
    });

    await here("/docs: in both themes, an operation is tried with the cookie, and its answer is shown", async () => {
      const docs = await page.context().newPage();
      const broken = [];
      docs.on("pageerror", (error) => broken.push(error.stack));
      for (const theme of ["light", "dark"]) {
        await docs.emulateMedia({ colorScheme: theme });
        await docs.goto(`${service.url}/docs`);
        await docs.getByRole("heading", { name: "Adjutant", exact: true }).waitFor();
        assert.deepEqual(await violations(docs), [], theme);
      }
      for (const link of ["Model Context Protocol", "AG-UI", "/openapi.json"]) await docs.getByRole("link", { name: link }).first().waitFor();
      const tried = docs.locator("#list_threads");
      await tried.locator("summary").first().click();
      await tried.getByText("Try it").click();
      await tried.getByLabel("limit").fill("1");
      await tried.getByRole("button", { name: "Send" }).click();
      await tried.locator(".answer").getByText('"thread_id"').first().waitFor();
      assert.deepEqual(await violations(docs), []);
      const sent = docs.locator("#send_message");
      await sent.locator("summary").first().click();
      await sent.getByText("Try it").click();
      await sent.getByLabel("Body").fill('{"message": "hello"}');
      await sent.getByRole("button", { name: "Send" }).click();
      await sent.locator(".answer").getByText("I heard you.").waitFor();
      await sent.getByLabel("Body").fill("{");
      await sent.getByRole("button", { name: "Send" }).click();
      await sent.locator(".answer").getByText("invalid_request").waitFor();
      assert.deepEqual(broken, []);
      await docs.close();
    });

    await here("nothing was asked of anybody else, and nothing broke", async () => {
      const own = page.asked.filter((url) => !url.startsWith(service.url) && !url.startsWith("blob:") && !url.startsWith("data:"));
      assert.deepEqual(own, []);
      assert.deepEqual(page.broken.filter((text) => !text.includes("app.js")), []);
    });
  } finally {
    await page.close();
    await service.stop();
  }
}

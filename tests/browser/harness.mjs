// Starts one service per group of checks and a browser, and collects the findings.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createRequire } from "node:module";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const { default: AxeBuilder } = createRequire(import.meta.url)("@axe-core/playwright");

const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

export const lines = (...objects) => objects.map((object) => JSON.stringify(object)).join("\n") + "\n";

/** Starts `adjutant serve ...args` in an empty home, with a model that follows `script` and the settings `toml`. */
export async function serve({ script, toml = "", args = [] }) {
  const home = mkdtempSync(join(tmpdir(), "adjutant-browser-"));
  const folder = (name) => join(home, name);
  mkdirSync(join(folder("config"), "adjutant"), { recursive: true });
  writeFileSync(folder("script.jsonl"), script);
  // The checks send requests faster than the rate limit of a user allows.
  const table = toml.includes("[serve]") ? toml : `[serve]\nrequests_per_minute = 100000\n${toml}`;
  writeFileSync(join(folder("config"), "adjutant", "config.toml"), table);
  const env = { PATH: process.env.PATH, HOME: home, XDG_CONFIG_HOME: folder("config"), XDG_DATA_HOME: folder("data"), XDG_STATE_HOME: folder("state"), XDG_CACHE_HOME: folder("cache") };
  const child = spawn(process.env.ADJUTANT_BIN, ["serve", "--json", "--bind", "127.0.0.1:0", "-m", `scripted:${folder("script.jsonl")}`, ...args], { cwd: home, env, stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.on("data", (data) => (errors += data));
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const announced = await new Promise((resolve, reject) => {
    let text = "";
    child.stdout.on("data", (data) => {
      text += data;
      if (text.includes("\n")) resolve(JSON.parse(text));
    });
    ended.then((code) => reject(new Error(`adjutant serve ended with ${code}: ${errors}`)));
  });
  const stop = async () => {
    child.kill("SIGKILL");
    await ended;
    rmSync(home, { recursive: true, force: true });
  };
  /** Waits for a line of the log. The service writes it in another thread, so it may come after the response. */
  const says = async (line) => {
    const signal = AbortSignal.timeout(60_000);
    while (!line.test(errors)) await once(child.stderr, "data", { signal }).catch(() => assert.match(errors, line));
  };
  return { ...announced, home, stop, says };
}

/** A TCP proxy in front of the service at `url` whose connections can be cut. */
export async function wire(url) {
  const { port } = new URL(url);
  const open = new Set();
  let isUp = true;
  const server = net.createServer((client) => {
    if (!isUp) return client.destroy();
    const there = net.connect(Number(port), "127.0.0.1");
    for (const [one, other] of [[client, there], [there, client]]) {
      open.add(one);
      one.pipe(other);
      one.on("error", () => other.destroy());
      one.on("close", () => (open.delete(one), other.destroy()));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    cut() {
      isUp = false;
      for (const socket of open) socket.destroy();
    },
    mend: () => (isUp = true),
    /** Lets nothing more through the connections that are open, without an end: what a network does that forgot them. */
    hush() {
      for (const socket of open) socket.unpipe().pause();
    },
    stop: () => new Promise((resolve) => (open.forEach((socket) => socket.destroy()), server.close(resolve))),
  };
}

export function launch() {
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

/** Makes actions on a page resolve only after the next frame has been drawn, so that no check reads the state before it. */
function followDrawing(page) {
  const follow = (owner, names, pageOf) => {
    for (const name of names) {
      const act = owner[name];
      owner[name] = async function (...given) {
        const done = await act.apply(this, given);
        // A page that was closed or reloaded has nothing to draw.
        await drawn(pageOf(this)).catch(() => {});
        return done;
      };
    }
  };
  follow(page, ["fill", "press"], () => page);
  follow(page.keyboard, ["press"], () => page);
  const locators = Object.getPrototypeOf(page.locator("body"));
  if (locators.followsDrawing) return;
  locators.followsDrawing = true;
  follow(locators, ["click", "fill", "press", "selectOption"], (locator) => locator.page());
}

/**
 * Runs in the page: delays frames and requests by `ms`. With `SLOW_MS=100`, a check that reads before the page has
 * drawn fails every time.
 */
function slow(ms) {
  window.requestAnimationFrame = (work) => setTimeout(() => work(performance.now()), ms);
  window.cancelAnimationFrame = (id) => clearTimeout(id);
  const ask = window.fetch;
  window.fetch = async (...request) => {
    await new Promise((done) => setTimeout(done, ms));
    return ask(...request);
  };
}

/** Opens a signed-in page in a browser context of its own, or in that of the page `beside`, and records its requests. */
export async function open(browser, service, { base = service.url, theme = "light", size = { width: 1280, height: 800 }, link = true, panel = true, beside, ...options } = {}) {
  const context = beside?.context() ?? await browser.newContext({ viewport: size, colorScheme: theme, locale: "en-GB", timezoneId: "UTC", ...options });
  // As for a person who had the right side open; `null`: who never chose.
  if (panel !== null) await context.addInitScript((panel) => localStorage.getItem("adjutant.panel") ?? localStorage.setItem("adjutant.panel", panel), panel);
  if (process.env.SLOW_MS) await context.addInitScript(slow, Number(process.env.SLOW_MS));
  const page = await context.newPage();
  followDrawing(page);
  // Long enough that only a hang exceeds it, even on a busy machine. Set `PATIENCE_MS` while writing a check.
  page.setDefaultTimeout(Number(process.env.PATIENCE_MS ?? 180_000));
  const asked = [];
  const broken = [];
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => broken.push(error.stack));
  page.on("console", (message) => {
    // The browser itself logs every response with an error status; that is not a fault of the page.
    if (["error", "warning"].includes(message.type()) && !message.text().startsWith("Failed to load resource")) broken.push(message.text());
  });
  page.on("dialog", (dialog) => (broken.push(`dialog: ${dialog.message()}`), dialog.dismiss()));
  await page.goto(link ? `${base}/?token=${service.token}` : `${base}/`);
  if (link) await page.waitForSelector("#composer");
  const closeTab = page.close.bind(page);
  return Object.assign(page, { asked, broken, close: () => (beside ? closeTab() : context.close()), cookies: context });
}

/** Returns a module of the page, the one that the page itself uses, for `evaluate`: its address is that of this version. */
export const moduleOf = (page, name) => page.evaluate((name) => new URL(name, document.querySelector("script[type=module]").src).href, name);

/** Types a message and sends it. */
export async function say(page, text) {
  await page.fill("#composer", text);
  // On touch screens, Enter inserts a line break instead.
  if (await page.evaluate(() => matchMedia("(pointer: fine)").matches)) await page.press("#composer", "Enter");
  else await page.locator(".composer [type=submit]").click();
}

/** Waits until the last key press or click is visible: the page draws once per frame. */
export async function drawn(page) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => requestAnimationFrame(done)))));
}

/** Waits until no turn is running and the last one shows its outcome. */
export async function settled(page, turns) {
  await drawn(page);
  await page.waitForFunction(
    (turns) => {
      const all = document.querySelectorAll(".turn");
      const last = all[all.length - 1];
      return (turns === undefined || all.length === turns) && !document.querySelector(".is-stop") && last?.querySelector(".badge, .problem, .confirm");
    },
    turns,
  );
}

export const last = (page) => page.locator(".turn").last();

/** Returns the violations that axe-core finds in the current state of the page. */
export async function violations(page) {
  // During a transition axe-core would measure the contrast of intermediate colours.
  await page.evaluate(() => Promise.all(document.getAnimations().filter((animation) => animation.effect.getTiming().iterations !== Infinity).map((animation) => animation.finished.catch(() => {}))));
  const { violations } = await new AxeBuilder({ page }).analyze();
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.target} ${node.failureSummary}`).join("; ")}`);
}

let failed = 0;

/** Runs one check and prints a line with its result. */
export async function check(name, work, page) {
  try {
    await work();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n      ${String(error.stack ?? error).split("\n").slice(0, 8).join("\n      ")}`);
    if (process.env.SCREENSHOTS && page) await page.screenshot({ path: join(process.env.SCREENSHOTS, `${name.replace(/\W+/g, "-")}.png`) }).catch(() => {});
  }
}

export const failures = () => failed;

// Cost until one can write: requests for the page's own files, and the time on a slow line.

import assert from "node:assert/strict";
import { check, lines, open, serve } from "./harness.mjs";

/** A line as on the road: 150 ms there and back, 1.6 Mbit/s. */
const SLOW = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 90_000 };

export async function loading(browser) {
  const service = await serve({ script: lines({ text: "Hello.", repeat: true }) });
  const page = await open(browser, service);
  try {
    const cdp = await page.context().newCDPSession(page);
    await cdp.send("Network.enable");
    /** Loads the page; returns the addresses of its own files that were asked for over the network, and the milliseconds until one can write. */
    const load = async () => {
      const asked = new Map();
      const note = ({ requestId, request }) => asked.set(requestId, request.url);
      const cached = ({ requestId }) => asked.delete(requestId);
      cdp.on("Network.requestWillBeSent", note);
      cdp.on("Network.requestServedFromCache", cached);
      const fromDisk = ({ requestId, response }) => (response.fromDiskCache ? asked.delete(requestId) : null);
      cdp.on("Network.responseReceived", fromDisk);
      const begin = Date.now();
      await page.goto(`${service.url}/`);
      await page.locator("#composer").waitFor();
      const ms = Date.now() - begin;
      await page.waitForLoadState("networkidle");
      for (const [name, listener] of [["requestWillBeSent", note], ["requestServedFromCache", cached], ["responseReceived", fromDisk]]) cdp.off(`Network.${name}`, listener);
      const own = [...asked.values()].map((url) => new URL(url)).filter(({ origin, pathname }) => origin === service.url && !pathname.startsWith("/v1/"));
      return { ms, own: own.map(({ pathname }) => pathname) };
    };

    await check("loading: a second visit asks for the page alone; its files are kept until they change", async () => {
      const { own } = await load();
      assert.ok(own.length <= 3, own.join(" "));
      const headers = await page.evaluate(async () => {
        const of = async (path) => (await fetch(path)).headers.get("cache-control");
        return [await of("/"), await of(document.querySelector("script[type=module]").src), await of("/web/app.js")];
      });
      assert.deepEqual(headers, ["no-cache", "public, max-age=31536000, immutable", "no-cache"]);
    }, page);

    await check("loading: every module that the page begins with is named by it, and each is used", async () => {
      const found = await page.evaluate(() => {
        const named = new Set([...document.querySelectorAll("link[rel=modulepreload]")].map(({ href }) => href));
        const loaded = performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => name.endsWith(".js"));
        const later = /theme-first|words\/|vendor\/(highlight|temml)/;
        return { missing: loaded.filter((name) => !named.has(name) && !later.test(name)), unused: [...named].filter((name) => !loaded.includes(name)) };
      });
      assert.deepEqual(found, { missing: [], unused: [] });
    }, page);

    await check("loading: on a slow line, from the cache", async () => {
      await cdp.send("Network.emulateNetworkConditions", SLOW);
      const times = [];
      for (let round = 0; round < 3; round += 1) times.push((await load()).ms);
      console.log(`      150 ms and 1.6 Mbit/s, from the cache: one can write after ${times.join(", ")} ms`);
      assert.deepEqual(page.broken, []);
    }, page);
  } finally {
    await page.close();
    await service.stop();
  }
}

// Texts that try to break out of their place in the page: from the model, from a tool, in a task and in a title.

import assert from "node:assert/strict";
import { check, last, lines, open, say, serve, settled } from "./harness.mjs";
import { HOSTILE, NESTED } from "./hostile-text.mjs";

const toolServer = new URL("tool-server.mjs", import.meta.url).pathname;

// Allowed by name: these tests are not about what is asked after words of others.
export const OTHER = `[agent]\nallow = ["add_task", "other__nap", "other__gossip", "other__grumble", "other__launch"]\n[mcp.servers.other]\ncommand = ${JSON.stringify([process.execPath, toolServer])}\nallow = ["nap", "gossip", "grumble", "launch"]\n`;

export async function hostile(browser) {
  const script = lines(
    { match: "success", text: `It says: ${HOSTILE}` },
    { match: "gossip", calls: [{ name: "other__gossip", args: { words: HOSTILE } }] },
    { match: "nested", text: NESTED },
    { match: "add ", calls: [{ name: "add_task", args: { description: "<img src=x onerror=window.owned=9> [x](javascript:window.owned=10)" } }] },
    { match: "delete", calls: [{ name: "delete_task", args: { task_id: "1" } }] },
    { text: HOSTILE, thinking: HOSTILE, repeat: true },
  );
  const service = await serve({ script, toml: OTHER });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  try {
    await here("hostile words of person, model, thought, tool and task are shown as words", async () => {
      await say(page, "<img src=x onerror=window.owned=11> say it");
      await settled(page, 1);
      await last(page).locator(".badge").click();
      await say(page, "gossip please");
      await settled(page, 2);
      await last(page).locator(".tool-head").click();
      assert.match(await last(page).locator(".tool-body").innerText(), /<script>window\.owned=2<\/script>/);
      await say(page, "nested please");
      await settled(page, 3);
      assert.match(await last(page).locator(".markdown").innerText(), /deepest/);
      await say(page, "add it");
      await settled(page, 4);
      await page.locator(".task", { hasText: "<img src=x" }).waitFor();
      await say(page, "delete it");
      await settled(page, 5);
      assert.match(await page.locator(".confirm h3").innerText(), /Delete “<img src=x/);
      await page.locator(".turn").nth(1).locator(".badge").click();
      await page.locator(".turn").nth(1).getByRole("button", { name: "Show every step" }).click();
      await page.locator(".waterfall").waitFor();
      for (const step of await page.locator(".waterfall > li > button").all()) await step.click();
      await page.getByRole("button", { name: "Raw JSON" }).click();
    });

    await here("no script ran, no picture and no frame is there, links lead where they may", async () => {
      const found = await page.evaluate(() => ({
        owned: window.owned,
        foreign: document.querySelectorAll("#app :is(img, iframe, script, object, embed, style, link, base)").length,
        handlers: [...document.querySelectorAll("#app *")].filter((node) => node.getAttributeNames().some((name) => name.startsWith("on"))).length,
        links: [...document.querySelectorAll(".turns a[href]")].map((link) => [link.protocol, link.rel, link.target]),
      }));
      assert.equal(found.owned, undefined);
      assert.equal(found.foreign, 0);
      assert.equal(found.handlers, 0);
      assert.ok(found.links.length > 4);
      for (const [protocol, rel, target] of found.links) {
        assert.ok(["http:", "https:", "mailto:"].includes(protocol), protocol);
        assert.equal(rel, "noopener noreferrer nofollow");
        assert.equal(target, "_blank");
      }
    });

    await here("the rules for the browser stand behind that: they refuse what would be put in", async () => {
      const refused = await page.evaluate(async () => {
        const received = [];
        document.addEventListener("securitypolicyviolation", (event) => received.push(event.effectiveDirective));
        const image = new Image();
        image.src = "https://evil.example/pixel.png";
        const script = document.createElement("script");
        script.textContent = "window.owned = 12";
        document.body.append(image, script);
        await fetch("https://evil.example/").catch(() => {});
        await new Promise((resolve) => setTimeout(resolve, 0));
        while (received.length < 3) await new Promise((resolve) => setTimeout(resolve, 10));
        image.remove();
        script.remove();
        return { received: received.sort(), owned: window.owned };
      });
      assert.deepEqual(refused, { received: ["connect-src", "img-src", "script-src-elem"], owned: undefined });
    });

    await here("hostile: no request but to the service", () => {
      // The request of the check before is blocked before it is sent, but Chromium reports it anyway.
      const tried = new Set(["https://evil.example/pixel.png", "https://evil.example/"]);
      assert.deepEqual(page.asked.filter((url) => !url.startsWith(service.url) && !tried.has(url)), []);
    });
  } finally {
    await page.close();
    await service.stop();
  }
}

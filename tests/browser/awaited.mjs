// A client-side tool call, which waits for the result of the program that requested it: the page shows it and asks
// nobody.

import assert from "node:assert/strict";
import { join } from "node:path";
import { check, last, lines, open, serve, violations } from "./harness.mjs";

const SCRIPT = lines(
  { match: "sunny", text: "It is sunny there." },
  { match: "weather", calls: [{ name: "get_weather", args: { city: "Oslo" } }] },
  { text: "I heard you.", repeat: true },
);
const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const tools = [{ type: "function", function: { name: "get_weather", description: "The weather in a city.", parameters: city } }];

export async function awaited(browser) {
  const service = await serve({ script: SCRIPT });
  const asked = async (path, body) => {
    const headers = { authorization: `Bearer ${service.token}`, "content-type": "application/json" };
    const response = await fetch(service.url + path, { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) });
    assert.equal(response.status, 200);
    return response.json();
  };
  const page = await open(browser, service);
  const here = (name, work) => check(`awaited: ${name}`, work, page);
  try {
    const messages = [{ role: "user", content: "the weather in Oslo" }];
    const begun = await asked("/v1/chat/completions", { model: "adjutant", messages, tools });
    const { message } = begun.choices[0];
    const [{ thread_id }] = (await asked("/v1/pending")).pending;
    const card = page.locator(".confirm");

    await here("the card says what it waits for, and has no buttons; nobody is told that it waits for them", async () => {
      await page.goto(`${service.url}/#/t/${thread_id}`);
      await page.reload();
      await card.waitFor();
      assert.match(await card.innerText(), /Get weather: Oslo\s+Waiting for the result from the program that sent the message\./);
      assert.equal(await card.getByRole("button").count(), 0);
      assert.equal(await page.getByText("Waiting for you").count(), 0);
      assert.equal(await page.locator("#composer").getAttribute("placeholder"), "Write a message");
      assert.equal(await last(page).getByRole("button", { name: "Good answer" }).count(), 0);
      assert.deepEqual(await page.locator("h1").innerText(), "the weather in Oslo");
      assert.deepEqual(await violations(page), []);
      if (process.env.SCREENSHOTS) await page.screenshot({ path: join(process.env.SCREENSHOTS, "awaited.png") });
    });

    await here("the result is there, and the answer", async () => {
      const result = { role: "tool", tool_call_id: message.tool_calls[0].id, content: "sunny" };
      const ended = await asked("/v1/chat/completions", { model: "adjutant", messages: [...messages, message, result], tools });
      assert.equal(ended.choices[0].message.content, "It is sunny there.");
      await page.reload();
      await last(page).getByText("It is sunny there.").waitFor();
      assert.equal(await card.count(), 0);
      await last(page).locator(".tool-head").click();
      assert.match(await last(page).locator(".tool").innerText(), /sunny/);
      assert.deepEqual(page.broken, []);
    });
  } finally {
    await page.close();
    await service.stop();
  }
}

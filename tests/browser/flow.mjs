// The main workflow: add, list and delete tasks, refuse and confirm a deletion, reload, stop a turn, and open its
// trace.

import assert from "node:assert/strict";
import { check, drawn, last, lines, open, say, serve, settled, wire } from "./harness.mjs";

const SCRIPT = lines(
  { match: "\"deleted\":true", text: "It is gone." },
  { match: "\"tasks\":[", text: "Here is **your list**." },
  { match: "\"description\":\"slow coffee\"", text: "Coffee is noted.", delay_ms: 6000 },
  { match: "\"description\":\"endless coffee\"", fault: "stall" },
  { match: "\"success\":false", text: "All right, I left it." },
  { match: "\"success\":true", text: "Noted: a task.", usage: { input: 812, output: 41 } },
  { match: "think about ", thinking: "Two words to find.", calls: [{ name: "add_task", args: { description: "{{rest}}" } }], text: "Let me write that down." },
  { match: "add ", calls: [{ name: "add_task", args: { description: "{{rest}}" } }], usage: { input: 780, output: 22 } },
  { match: "delete both", calls: [{ name: "delete_task", args: { task_id: "green tea" } }, { name: "delete_task", args: { task_id: "black tea" } }] },
  { match: "delete ", calls: [{ name: "delete_task", args: { task_id: "{{rest}}" } }] },
  { match: "please fail", fault: "quota", once: true },
  { match: "list", calls: [{ name: "list_tasks", args: {} }] },
  { match: "never end", text: "This answer begins and then it stands", fault: "stall" },
  { text: "I heard you.", repeat: true },
);

/** Text of the conversation only. The live region for screen readers repeats it. */
const shown = (page, text) => page.locator("main").getByText(text);
const tasks = (page) => page.locator(".task-words").allTextContents();

export async function flow(browser) {
  const service = await serve({ script: SCRIPT, toml: "[agent]\nlong_message = \"refuse\"\nmessage_chars_max = 4000\n" });
  const page = await open(browser, service);
  const here = (name, work) => check(name, work, page);
  try {
    await here("empty: examples of what the agent's tools can do, the demo says that it is one, the focus may be had at once", async () => {
      assert.deepEqual(await page.locator(".examples button").allInnerTexts(), ["Add buy milk", "What is on my list?", "Remember that …", "What can you do?"]);
      assert.equal(await page.locator(".ability").count(), 0, "there are no servers");
      assert.match(await page.locator(".banner").innerText(), /Demo/);
      await page.getByText("No tasks yet.").waitFor();
      assert.equal(new URL(page.url()).search, "", "the token is out of the address");
    });

    await here("an example is sent by a click, and the focus goes on to the message field", async () => {
      await page.locator(".examples button").nth(1).click();
      await settled(page, 1);
      assert.equal(await page.evaluate(() => document.activeElement.id), "composer");
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.locator(".examples").waitFor();
    });

    await here("a message over the limit, where none is cut, says so before it is sent, and stays to be made shorter", async () => {
      const long = "🙂".repeat(4001);
      await say(page, long);
      assert.match(await page.locator("#composer-hint").innerText(), /4,001 characters: .*limit of 4,000.*cannot be sent/);
      assert.equal(await page.locator("#composer").inputValue(), long);
      assert.equal(await page.locator(".turn").count(), 0);
      await page.fill("#composer", "🙂".repeat(4000));
      assert.doesNotMatch(await page.locator("#composer-hint").innerText(), /limit/);
      await page.fill("#composer", "");
    });

    await here("add: what was done is said in words, the answer stands, the panel follows; nothing of the machine is shown", async () => {
      await say(page, "add green tea");
      await settled(page, 1);
      assert.match(await last(page).locator(".tool").innerText(), /^Added “green tea”/);
      assert.equal(await last(page).locator(".tool-head").getAttribute("aria-expanded"), "false");
      assert.match(await last(page).locator(".markdown").innerText(), /Noted: a task/);
      assert.deepEqual(await tasks(page), ["green tea"]);
      assert.doesNotMatch(await last(page).innerText(), /add_task|tok|\$|ms|invoke|SUCCESS/i);
      assert.match(await page.locator(".changes").innerText(), /added[\s\S]*green tea/);
      assert.match(await page.locator("#said").innerText(), /Noted: a task/);
    });

    await here("a click shows what the machine made of it: the tool, its arguments and its result; another one tokens and cost", async () => {
      await last(page).locator(".tool-head").click();
      assert.match(await last(page).locator(".tool-body").innerText(), /add_task · \d+ ms[\s\S]*"description": "green tea"[\s\S]*"completed": false/);
      await last(page).locator(".tool-head").click();
      assert.equal(await last(page).locator(".details").count(), 0);
      await last(page).locator(".badge").click();
      assert.match(await last(page).locator(".details").innerText(), /task completed[\s\S]*1592\/63 tok[\s\S]*\$0/);
      await last(page).locator(".badge").click();
      assert.equal(await last(page).locator(".details").count(), 0);
    });

    await here("list: markdown, and the conversation has a title", async () => {
      await say(page, "list them");
      await settled(page, 2);
      assert.equal(await last(page).locator(".markdown strong").innerText(), "your list");
      await page.locator(".thread.is-open", { hasText: "add green tea" }).waitFor();
      assert.match(await page.title(), /add green tea/);
    });

    await here("delete: names the task, not its id; the focus is on Keep; Keep keeps", async () => {
      await say(page, "delete green tea");
      await settled(page, 3);
      assert.match(await page.locator(".confirm h3").innerText(), /^Delete “green tea”\?$/);
      assert.match(await page.locator(".expiry").innerText(), /Expires in (6|7) days/);
      await page.waitForFunction(() => document.activeElement?.textContent === "Keep");
      await page.keyboard.press("Enter");
      await page.locator(".confirm").waitFor({ state: "detached" });
      await settled(page, 3);
      assert.match(await last(page).locator(".tool.is-refused").innerText(), /Not done: Delete “green tea”/);
      assert.deepEqual(await tasks(page), ["green tea"]);
    });

    await here("loaded again: the same turns in the same words, and what was kept is no failure", async () => {
      // Times are shown to the minute, so they are the same after a reload.
      const words = async () => (await page.locator(".answered").allInnerTexts()).map((text) => text.trim());
      const before = await words();
      await page.reload();
      await settled(page, 3);
      assert.deepEqual(await words(), before);
      assert.match(before[2], /Not done: Delete “green tea”/);
      assert.match(await page.locator(".changes").innerText(), /added[\s\S]*green tea/);
    });

    await here("delete: Delete deletes", async () => {
      await say(page, "delete green tea");
      await settled(page, 4);
      await page.locator(".confirm").getByRole("button", { name: "Delete" }).click();
      await shown(page, "It is gone.").waitFor();
      await settled(page, 4);
      assert.deepEqual(await tasks(page), []);
      assert.match(await page.locator(".changes li").first().innerText(), /deleted[\s\S]*green tea/);
    });

    await here("two at once: nothing is done before both have an answer, and a choice can be changed", async () => {
      await say(page, "add green tea");
      await settled(page, 5);
      await say(page, "add black tea");
      await settled(page, 6);
      await say(page, "delete both");
      await settled(page, 7);
      const cards = page.locator(".confirm");
      assert.equal(await cards.count(), 2);
      assert.deepEqual(await page.locator(".ask-all li").allInnerTexts(), ["Delete “green tea”?", "Delete “black tea”?"]);
      const ends = await page.locator(".expiry").allInnerTexts();
      assert.equal(ends[0], ends[1]);
      await cards.nth(0).getByRole("button", { name: "Delete" }).click();
      assert.equal(await page.locator(".ask-all").count(), 0, "one question alone needs no answer for all");
      await cards.nth(0).getByText("Delete – waiting for your other answers").waitFor();
      assert.equal((await tasks(page)).length, 2);
      await cards.nth(0).getByRole("button", { name: "Change" }).click();
      await cards.nth(0).getByRole("button", { name: "Keep" }).click();
      await cards.nth(1).getByRole("button", { name: "Delete" }).click();
      await shown(page, "It is gone.").nth(1).waitFor();
      await settled(page, 7);
      assert.deepEqual(await tasks(page), ["green tea"]);
    });

    await here("one answer for all that wait", async () => {
      await say(page, "add black tea");
      await settled(page, 8);
      await say(page, "delete both");
      await settled(page, 9);
      await page.getByRole("button", { name: "Keep all 2" }).click();
      await page.locator(".ask-all").waitFor({ state: "detached" });
      await settled(page, 9);
      assert.deepEqual(await tasks(page), ["green tea", "black tea"]);
      await say(page, "delete both");
      await settled(page, 10);
      await page.getByRole("button", { name: "Delete all 2" }).click();
      await page.locator(".ask-all").waitFor({ state: "detached" });
      await settled(page, 10);
      assert.deepEqual(await tasks(page), []);
      await say(page, "add green tea");
      await settled(page, 11);
    });

    await here("yes and no may be written; what is neither does nothing", async () => {
      await say(page, "delete green tea");
      await settled(page, 12);
      await say(page, "maybe tomorrow");
      await page.getByText("Still waiting for your answer").waitFor();
      assert.equal(await page.locator(".confirm").count(), 1);
      assert.deepEqual(await tasks(page), ["green tea"]);
      await page.getByRole("button", { name: "Close", exact: true }).click();
      await say(page, "no");
      await settled(page);
      assert.equal(await page.locator(".confirm").count(), 0);
      await say(page, "delete green tea");
      await page.locator(".confirm").waitFor();
      await say(page, "Yes.");
      await shown(page, "It is gone.").nth(3).waitFor();
      await settled(page);
      assert.deepEqual(await tasks(page), []);
    });

    await here("edited arguments: what runs is what was edited", async () => {
      await say(page, "add one");
      await settled(page);
      await say(page, "add two");
      await settled(page);
      await say(page, "delete one");
      await page.locator(".confirm").waitFor();
      await page.getByRole("button", { name: "Edit", exact: true }).click();
      await page.getByLabel("task id").fill("two");
      // Approval is disabled until the meaning of the edited arguments is shown, and again after a change.
      const yes = page.getByRole("button", { name: "Delete with these" });
      const look = page.getByRole("button", { name: "Show the effect" });
      assert.equal(await yes.count(), 0);
      await look.click();
      await page.getByText("With these: Delete “two”?").waitFor();
      await page.waitForFunction(() => document.activeElement?.className === "meaning");
      await page.getByLabel("task id").fill("on");
      await yes.waitFor({ state: "detached" });
      await page.getByLabel("task id").fill("nothing like that");
      await page.keyboard.press("Enter");
      await page.locator(".confirm .wrong").waitFor();
      assert.equal(await yes.count(), 0);
      await page.getByLabel("task id").fill("two");
      await page.keyboard.press("Enter");
      await page.getByText("With these: Delete “two”?").waitFor();
      assert.equal((await tasks(page)).length, 2);
      await yes.click();
      await page.locator(".confirm").waitFor({ state: "detached" });
      await page.waitForFunction(() => document.querySelectorAll(".task").length === 1);
      assert.deepEqual(await tasks(page), ["one"]);
      await settled(page);
    });

    await here("tasks by hand: add, rename, complete, delete with a question", async () => {
      await page.fill("#new-task", "by hand");
      await page.press("#new-task", "Enter");
      await page.locator(".task", { hasText: "by hand" }).waitFor();
      await page.getByRole("button", { name: "Rename by hand" }).click();
      await page.getByLabel("Description").fill("by my hand");
      await page.getByLabel("Description").press("Enter");
      await page.locator(".task", { hasText: "by my hand" }).waitFor();
      await page.getByLabel("Complete by my hand").click();
      await page.getByText("1 completed").waitFor();
      await page.getByRole("button", { name: "Delete one" }).click();
      await page.waitForFunction(() => document.activeElement?.textContent === "Keep");
      assert.match(await page.locator(".task .ask").innerText(), /Delete “one”\?/);
      await page.keyboard.press("Enter");
      assert.equal(await page.locator(".task", { hasText: "one" }).count(), 1);
      await page.getByRole("button", { name: "Delete one" }).click();
      await page.locator(".task .ask").getByRole("button", { name: "Delete" }).click();
      await page.waitForFunction(() => document.querySelectorAll(".task").length === 1);
    });

    await here("while it works: a clock, the steps so far, and the thought, folded; the conversation is in the list at once", async () => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await say(page, "think about endless coffee");
      await page.locator("button.work-line").click();
      await shown(page, "Two words to find.").waitFor();
      await page.locator(".thread.is-open", { hasText: "think about endless coffee" }).waitFor();
      await page.locator(".step-line", { hasText: "Reading the results" }).waitFor();
      assert.deepEqual(await page.locator(".step-line").allInnerTexts(), ["Reading your message", "Add a task", "Reading the results"]);
      await page.waitForFunction(() => /[1-9]\d* s/.test(document.querySelector(".work-line .digits").textContent));
      await page.getByRole("button", { name: "Stop", exact: true }).click();
      await settled(page, 1);
    });

    await here("a thought is folded, and can be read", async () => {
      await page.getByRole("button", { name: "Menu of think about endless coffee" }).click();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.locator(".thread .ask").getByRole("button", { name: "Delete" }).click();
      await page.locator(".examples").waitFor();
      await say(page, "think about slow coffee");
      await page.locator("button.work-line").click();
      await shown(page, "Two words to find.").waitFor();
    });

    await here("reload in the middle: what was said stays, the rest comes, and nothing comes twice", async () => {
      await shown(page, "Let me write that down.").waitFor();
      await page.reload();
      await page.locator(".is-stop").waitFor();
      await shown(page, "Coffee is noted.").waitFor();
      await settled(page, 1);
      assert.equal(await last(page).locator(".tool").count(), 1);
      assert.equal(await shown(page, "Let me write that down.").count(), 1);
      assert.equal(await shown(page, "Coffee is noted.").count(), 1);
      assert.deepEqual(await page.locator(".bubble").allInnerTexts(), ["think about slow coffee"]);
      assert.match(await last(page).locator(".badge").innerText(), /^Thought for ([6-9]|\d\d) s/);
    });

    await here("Stop: the answer ends, what was said stays", async () => {
      await say(page, "never end");
      await shown(page, "This answer begins").waitFor();
      await page.getByRole("button", { name: "Stop" }).click();
      await shown(page, "Stopped. Completed actions are not undone.").waitFor();
      await settled(page, 2);
      assert.equal(await shown(page, "This answer begins and then it stands").count(), 1);
      assert.equal(await last(page).getByText("Stopped").count(), 1, "it is said once");
      await page.reload();
      await settled(page, 2);
      assert.equal(await last(page).getByText("Stopped").count(), 1, "it is said once");
    });

    await here("Esc stops too", async () => {
      await say(page, "never end");
      await shown(page, "This answer begins").nth(1).waitFor();
      await page.keyboard.press("Escape");
      await shown(page, "Stopped.").nth(1).waitFor();
      await settled(page, 3);
    });

    await here("the last words by the arrow", async () => {
      await say(page, "something else");
      await settled(page, 4);
      await page.focus("#composer");
      await page.keyboard.press("ArrowUp");
      await page.waitForFunction(() => document.getElementById("composer").value === "something else");
      await page.fill("#composer", "");
    });

    await here("trace: the badge opens the turn, its steps, what was sent and received", async () => {
      await page.locator(".thread", { hasText: "add green tea" }).locator("a").click();
      const turn = page.locator(".turn", { hasText: "Deleted “green tea”" }).last();
      await turn.waitFor();
      await turn.locator(".badge").click();
      await turn.getByRole("button", { name: "Show every step" }).click();
      await page.locator(".waterfall").waitFor();
      const steps = await page.locator(".waterfall .step-name").allInnerTexts();
      assert.deepEqual(steps.map((step) => step.split(" ")[0]).filter((kind) => kind !== "engine"), ["queue", "loading", "model", "waiting", "tool", "model"]);
      await page.locator(".waterfall .is-model button").first().click();
      assert.match(await page.locator(".step").innerText(), /Sent[\s\S]*delete green tea[\s\S]*Received[\s\S]*delete_task/);
      assert.match(await page.locator(".command").innerText(), /^adjutant log show [0-9a-f-]{36}/);
      await page.getByRole("button", { name: "Raw JSON" }).click();
      await page.locator(".fold .json", { hasText: "\"steps\"" }).waitFor();
      assert.match(await page.locator(".facts-list").innerText(), /Model calls\s+2, tool rounds 1/);
    });

    await here("trace: list, totals, filters", async () => {
      await page.getByRole("button", { name: "All turns" }).click();
      await page.locator(".decisions li").first().waitFor();
      const all = await page.locator(".decisions li").count();
      assert.match(await page.locator(".totals").innerText(), new RegExp(`turns\\s+${all}`));
      await page.getByLabel("Outcome").selectOption("REFUSAL:CONFIRMATION_DENIED");
      await page.waitForFunction((all) => document.querySelectorAll(".decisions li").length < all, all);
      assert.ok((await page.locator(".decisions .outcome").allInnerTexts()).every((text) => text === "confirmation denied"));
      await page.getByLabel("Outcome").selectOption("");
      await page.getByLabel("Conversations to show").selectOption("all");
      await page.waitForFunction((all) => document.querySelectorAll(".decisions li").length > all, all);
      await page.getByLabel("Tool", { exact: true }).selectOption("list_tasks");
      await page.waitForFunction(() => document.querySelectorAll(".decisions li").length === 2);
      await page.getByRole("tab", { name: "Tasks" }).click();
    });

    await here("conversations: search, rename, delete with a question, back and forward", async () => {
      await page.getByLabel("Search titles and messages").fill("coffee");
      await page.waitForFunction(() => document.querySelectorAll(".thread").length === 1);
      await page.getByLabel("Search titles and messages").fill("was noted");
      const snippet = page.locator(".thread-said");
      await snippet.getByText("Coffee is noted.").first().waitFor();
      assert.equal(await page.getByRole("heading", { name: "Found in messages" }).count(), 1);
      await page.getByLabel("Search titles and messages").fill("");
      await page.waitForFunction(() => document.querySelectorAll(".thread").length === 3);
      await page.getByRole("button", { name: /^Menu of think about/ }).click();
      await page.getByRole("button", { name: "Rename", exact: true }).click();
      await page.getByLabel("Title", { exact: true }).fill("Coffee, slowly");
      await page.getByLabel("Title", { exact: true }).press("Enter");
      await page.locator(".thread", { hasText: "Coffee, slowly" }).locator("a").click();
      await shown(page, "Coffee is noted.").waitFor();
      await page.goBack();
      await shown(page, "It is gone.").first().waitFor();
      await page.goForward();
      await shown(page, "Coffee is noted.").waitFor();
      await page.getByRole("button", { name: "Menu of Coffee, slowly" }).click();
      await page.getByRole("button", { name: "Delete…" }).click();
      await page.waitForFunction(() => document.activeElement?.textContent === "Keep");
      await page.locator(".thread .ask").getByRole("button", { name: "Delete" }).click();
      await page.waitForFunction(() => document.querySelectorAll(".thread").length === 2);
      assert.match(await page.locator(".chat-head h1").innerText(), /New conversation/);
    });

    await here("keys: ? explains, / writes, Alt+R and Alt+T change the panel, Alt+N begins anew", async () => {
      await page.locator(".chat-head h1").click();
      await page.keyboard.press("?");
      await page.getByRole("dialog", { name: "Keyboard" }).waitFor();
      await page.keyboard.press("Escape");
      await page.waitForFunction(() => !document.querySelector("dialog"));
      await page.keyboard.press("Alt+KeyR");
      await page.locator("#tab-trace[aria-selected=true]").waitFor();
      await page.keyboard.press("Alt+KeyT");
      await page.locator(".tab-none, #tab-tasks[aria-selected=true]").waitFor();
      await page.locator(".chat-head h1").click();
      await page.keyboard.press("/");
      await page.waitForFunction(() => document.activeElement.id === "composer");
    });

    await here("nobody signed in any more: how to get in is said, and a token lets in again", async () => {
      const me = await page.evaluate(() => fetch("/v1/me").then((response) => response.text()));
      await page.cookies.clearCookies();
      // A request of before, which is answered long after.
      let late = null;
      await page.route("**/v1/threads?**", (route) => {
        if (late !== null) return route.continue();
        late = route;
      });
      await say(page, "still there?");
      await page.getByRole("heading", { name: "Sign in to Adjutant" }).waitFor();
      await page.getByText("You are not signed in any more. What you wrote is kept").waitFor();
      await page.getByLabel("Token").fill("adj_wrong");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("This token is not valid here").waitFor();
      await page.getByLabel("Token").fill(service.token);
      // The answer comes when the message field is drawn, before the browser has shown it.
      await page.evaluate((me) => {
        const isDrawn = new Promise((done) => new MutationObserver(() => document.getElementById("composer") && done()).observe(document.body, { childList: true, subtree: true }));
        const { fetch } = window;
        window.fetch = (path, options) => (path === "/v1/me" ? isDrawn.then(() => new Response(me, { headers: { "content-type": "application/json" } })) : fetch(path, options));
      }, me);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.waitForFunction(() => document.getElementById("composer")?.value === "still there?");
      await late.fulfill({ status: 401, contentType: "application/problem+json", body: JSON.stringify({ code: "unauthorized", title: "Unauthorized", status: 401 }) });
      await drawn(page);
      await page.unroute("**/v1/threads?**");
      await page.fill("#composer", "");
    });

    await here("tried again: the new turn takes the place of the failed one, also after a reload", async () => {
      await page.getByRole("button", { name: "New conversation" }).click();
      await page.locator(".examples").waitFor();
      await say(page, "please fail");
      await settled(page, 1);
      await last(page).locator(".problem").getByRole("button", { name: "Try again" }).click();
      await shown(page, "I heard you.").waitFor();
      await settled(page, 1);
      assert.deepEqual(await page.locator(".bubble").allInnerTexts(), ["please fail"]);
      await page.reload();
      await settled(page, 1);
      assert.deepEqual(await page.locator(".bubble").allInnerTexts(), ["please fail"]);
      assert.equal(await page.locator(".problem").count(), 0);
    });

    await here("no request but to the service, nothing broken", () => {
      assert.deepEqual(page.asked.filter((url) => !url.startsWith(service.url)), []);
      assert.deepEqual(page.broken, []);
    });
    await page.close();

    const cable = await wire(service.url);
    const far = await open(browser, service, { base: cable.url });
    await check("a lost connection is told, found again, and the answer is whole", async () => {
      await say(far, "think about slow coffee");
      await shown(far, "Let me write that down.").waitFor();
      cable.cut();
      await far.getByText(/Connection lost\. Reconnecting/).first().waitFor();
      await far.evaluate(() => dispatchEvent(new Event("focus")));
      const isOld = far.locator(".side").getByText("The list could not be loaded again. It may have changed.");
      await isOld.waitFor();
      cable.mend();
      await shown(far, "Coffee is noted.").waitFor();
      await isOld.waitFor({ state: "detached" });
      await settled(far, 1);
      assert.equal(await last(far).locator(".tool").count(), 1);
      assert.equal(await shown(far, "Let me write that down.").count(), 1);
      assert.equal(await shown(far, "Coffee is noted.").count(), 1);
      assert.deepEqual(far.broken, []);
    }, far);
    await far.close();
    await cable.stop();
  } finally {
    await service.stop();
  }
}

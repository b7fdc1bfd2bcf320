// The page of a service that dispatches its turns to another one through Restate: `RESTATE_SERVER=.../restate-server
// node run.mjs restate`.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { check, last, open, say, settled } from "./harness.mjs";

/** Starts two services: the first accepts messages, the second runs the turns. */
async function start() {
  const program = fileURLToPath(new URL("two-services.py", import.meta.url));
  const args = [program, "--adjutant", process.env.ADJUTANT_BIN, "--restate", process.env.RESTATE_SERVER];
  const child = spawn("python3", args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const urls = await new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", (line) => resolve(JSON.parse(line)));
    ended.then((code) => reject(new Error(`the services ended with ${code}`)));
  });
  return { urls, kill: () => child.stdin.write("kill\n"), stop: () => (child.stdin.end(), ended) };
}

const answer = (page) => last(page).locator(".markdown");
const until = (page, number) => answer(page).getByText(`word-${number} `).waitFor();
/** Returns the numbers of the words that have arrived, in order. */
const words = async (page) => [...(await answer(page).innerText()).matchAll(/word-(\d+)/g)].map(([, number]) => Number(number));
const upTo = (count) => Array.from({ length: count }, (_, at) => at + 1);

export async function restate(browser) {
  assert.ok(process.env.RESTATE_SERVER, "RESTATE_SERVER names Restate's server");
  const services = await start();
  const [front, back] = await Promise.all(services.urls.map((url) => open(browser, { url }, { link: false })));
  const here = (name, work) => check(`with Restate: ${name}`, work, front);
  try {
    await Promise.all([front, back].map((page) => page.waitForSelector("#composer")));

    await here("words come as they are said", async () => {
      await say(front, "words 20");
      await until(front, 2);
      assert.ok((await words(front)).length < 20, "not all at once");
      await settled(front, 1);
      assert.deepEqual(await words(front), upTo(20));
    });

    await here("a tool has its card, and the panel follows", async () => {
      await say(front, "add green tea");
      await settled(front, 2);
      assert.match(await last(front).locator(".tool").innerText(), /Added “green tea”/);
      assert.deepEqual(await front.locator(".task-words").allTextContents(), ["green tea"]);
    });

    await here("Stop stops, and what was said stays", async () => {
      await say(front, "words 600");
      await until(front, 3);
      await front.getByRole("button", { name: "Stop" }).click();
      await front.locator("main").getByText("Stopped. Completed actions are not undone.").waitFor();
      await settled(front, 3);
      assert.ok((await front.locator("main").innerText()).includes("word-3"));
    });

    await here("reload in the middle: the rest comes, and nothing comes twice", async () => {
      await say(front, "words 60");
      await until(front, 5);
      await front.reload();
      await front.locator(".is-stop").waitFor();
      await settled(front, 4);
      assert.deepEqual(await words(front), upTo(60));
    });

    await here("what one service asks is answered at the other", async () => {
      await say(front, "delete green tea");
      await front.locator(".confirm").waitFor();
      await back.goto(front.url().replace(services.urls[0], services.urls[1]));
      await back.locator(".confirm").getByRole("button", { name: "Delete" }).click();
      await back.locator("main").getByText("It is done.").last().waitFor();
      await settled(back, 5);
      assert.deepEqual(await back.locator(".task-words").allTextContents(), []);
      await front.reload();
      await settled(front, 5);
      assert.equal(await front.locator(".confirm").count(), 0);
    });

    await here("the other is killed in the middle: the words go on, and nothing stands twice", async () => {
      await say(front, "words 60");
      await until(front, 5);
      services.kill();
      await settled(front, 6);
      assert.deepEqual(await words(front), upTo(60));
    });

    await here("nothing broke", () => assert.deepEqual(front.broken, []));
  } finally {
    await Promise.all([front.close(), back.close()]);
    await services.stop();
  }
}

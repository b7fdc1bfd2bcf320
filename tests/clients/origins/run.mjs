// Pages of other origins in a real browser: the official AG-UI client works from an allowed origin, and the browser
// blocks any other one. No page can use the cookie.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

// A front end of another product, which forwards /api as development servers do.
async function frontEnd(script) {
  const server = http.createServer((request, response) => {
    if (request.url === "/page.js") {
      return response.writeHead(200, { "Content-Type": "text/javascript" }).end(script);
    }
    if (request.url.startsWith("/api/")) {
      const { host, ...headers } = request.headers;
      const passed = http.request(server.behind + request.url.slice(4), { method: request.method, headers }, (answer) => {
        response.writeHead(answer.statusCode, answer.headers);
        answer.pipe(response);
      });
      return request.pipe(passed);
    }
    response.writeHead(200, { "Content-Type": "text/html" }).end('<!doctype html><title>Elsewhere</title><script type="module" src="/page.js"></script>');
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, origin: `http://localhost:${server.address().port}` };
}

async function serve(home, origin) {
  const settings = { ADJUTANT_SERVE_ORIGINS: origin, ADJUTANT_SERVE_REQUESTS_PER_MINUTE: "100000" };
  const child = spawn(process.env.ADJUTANT_BIN, ["serve", "--json", "--bind", "127.0.0.1:0", "-m", `scripted:${here("script.jsonl")}`], {
    cwd: home,
    env: { HOME: home, PATH: process.env.PATH, ...settings },
    stdio: ["ignore", "pipe", "inherit"],
  });
  process.once("exit", () => child.kill("SIGKILL"));
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return { child, ...JSON.parse(line) };
}

const { outputFiles } = await build({ entryPoints: [here("page.js")], bundle: true, format: "esm", platform: "browser", write: false, logLevel: "error" });
const script = outputFiles[0].text;
const [known, other] = [await frontEnd(script), await frontEnd(script)];
const home = await mkdtemp(join(tmpdir(), "adjutant-origins-"));
const service = await serve(home, known.origin);
// The page has the same host name with another port, so browsers send its cookies.
const url = service.url.replace("127.0.0.1", "localhost");
known.server.behind = other.server.behind = service.url;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless", "--no-sandbox", "--disable-gpu"] });

async function on(frontEnd, run) {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    // A user who is signed in to the service's own page has its cookie.
    await page.goto(`${url}/?token=${service.token}`);
    assert.equal((await context.cookies()).length, 1);
    await page.goto(frontEnd.origin);
    await page.waitForFunction(() => window.ask !== undefined);
    return await run(page);
  } finally {
    await context.close();
  }
}
const ask = (page, path, options) => page.evaluate(([url, options]) => window.ask(url, options), [url + path, options]);
const json = { method: "POST", headers: { "Content-Type": "application/json" } };

const checks = {
  async "the official client runs, streams and answers a question"() {
    const result = await on(known, (page) => page.evaluate(([url, token]) => window.talk(url, token), [url, service.token]));
    assert.deepEqual(result.tasks, [["green tea"], ["green tea"], []]);
    assert.ok(result.question.includes("green tea"), result.question);
    assert.equal(result.answer, "Gone.");
    assert.equal(result.kinds.filter((kind) => kind === "RUN_STARTED").length, 3);
    assert.ok(result.kinds.filter((kind) => kind === "TEXT_MESSAGE_CONTENT").length >= 2, result.kinds.join());
  },

  async "the page can read answers, refusals and what they are called"() {
    await on(known, async (page) => {
      const me = await ask(page, "/v1/me", { token: service.token });
      assert.equal(me.status, 200);
      assert.ok(me.headers["x-request-id"], JSON.stringify(me.headers));
      const nobody = await ask(page, "/v1/me", { token: "adj_wrong" });
      assert.deepEqual([nobody.status, JSON.parse(nobody.body).code], [401, "unauthorized"]);
      const nothing = await ask(page, "/v1/chat", { ...json, token: service.token, body: "{}" });
      assert.deepEqual([nothing.status, JSON.parse(nothing.body).code], [422, "invalid_request"]);
      assert.equal((await ask(page, "/v1/no-such", { token: service.token })).status, 404);
      const large = await ask(page, "/v1/chat", { ...json, token: service.token, body: "x".repeat(1100000) });
      assert.equal(large.status, 413);
      const library = { ...json.headers, "X-Stainless-Lang": "js", "Idempotency-Key": crypto.randomUUID() };
      const body = JSON.stringify({ model: "adjutant", messages: [{ role: "user", content: "hello" }] });
      assert.equal((await ask(page, "/v1/chat/completions", { method: "POST", token: service.token, headers: library, body })).status, 200);
      assert.equal((await ask(page, "/openapi.json")).status, 200);
    });
  },

  async "a cookie opens nothing for the page of another origin"() {
    for (const page of [known, other]) {
      await on(page, async (page) => {
        for (const credentials of ["include", "same-origin"]) {
          const read = await ask(page, "/v1/tasks", { credentials });
          assert.notEqual(read.status, 200, JSON.stringify(read));
          const sent = await ask(page, "/v1/chat", { ...json, credentials, body: JSON.stringify({ message: "please add stolen tea" }) });
          assert.notEqual(sent.status, 200, JSON.stringify(sent));
        }
        // A request that a form could send needs no preflight.
        await ask(page, "/v1/chat", { method: "POST", mode: "no-cors", credentials: "include", body: JSON.stringify({ message: "please add stolen tea" }) });
        await ask(page, "/v1/session", { ...json, credentials: "include", body: JSON.stringify({ token: service.token }) });
      });
    }
    const tasks = await fetch(`${service.url}/v1/tasks`, { headers: { Authorization: `Bearer ${service.token}` } });
    assert.ok(!(await tasks.text()).includes("stolen"));
  },

  async "the browser refuses a page that is not allowed"() {
    await on(other, async (page) => {
      for (const path of ["/v1/me", "/openapi.json", "/v1/tasks"]) {
        assert.deepEqual(await ask(page, path, { token: service.token }), { refused: "TypeError" });
      }
      await assert.rejects(page.evaluate(([url, token]) => window.talk(url, token), [url, service.token]), /fetch/);
    });
  },

  async "nor is what is no interface for programs read"() {
    await on(known, async (page) => {
      for (const path of ["/", "/docs", "/healthz", "/metrics", "/v1/session"]) {
        assert.deepEqual(await ask(page, path), { refused: "TypeError" }, path);
      }
    });
  },

  async "a proxy that passes the origin on is answered for an allowed one"() {
    const through = ({ origin }) => on({ origin }, (page) => page.evaluate(([token]) =>
      window.ask("/api/v1/chat", { method: "POST", token, headers: { "Content-Type": "application/json" }, body: JSON.stringify({ message: "hello" }) }), [service.token]));
    assert.equal((await through(known)).status, 200);
    const refused = await through(other);
    assert.equal(refused.status, 403);
    assert.ok(JSON.parse(refused.body).detail.includes(`have serve.origins name "${other.origin}"`), refused.body);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n${error.stack}`);
  }
}
await browser.close();
service.child.kill("SIGKILL");
await once(service.child, "exit");
await rm(home, { recursive: true, force: true });
process.exit(failed === 0 ? 0 : 1);

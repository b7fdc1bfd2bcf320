// Sign-in with a real OpenID provider: the redirects, restarts, sign-out, and forged responses.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import Provider from "oidc-provider";

/** Returns a port on which nothing listens. */
async function freePort() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  server.close();
  await once(server, "close");
  return port;
}

const [idPort, port] = [await freePort(), await freePort()];
const issuer = `http://127.0.0.1:${idPort}`;
const url = `http://127.0.0.1:${port}`;
// Characters that RFC 6749 allows in a secret, including some with a meaning in forms and headers.
const secret = "a secret: + and & and %41 = ~/\"";

// The provider would warn that it uses development keys.
console.warn = () => {};
console.info = () => {};
const provider = new Provider(issuer, {
  clients: [{ client_id: "adjutant", client_secret: secret, redirect_uris: [`${url}/signin/callback`], post_logout_redirect_uris: [`${url}/`] }],
  claims: { openid: ["sub"], groups: ["groups"], email: ["email", "email_verified"] },
  conformIdTokenClaims: false,
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, groups: id === "olga" ? ["staff", "admins"] : ["staff"], email: `${id}@example.com`, email_verified: id !== "mallory" }),
  }),
});
const answer = provider.callback();
/** Changes the provider's behaviour, to do what an honest one never does. */
let interfere = null;
function startProvider() {
  const server = createServer((request, response) => (interfere?.(request, response) ? undefined : answer(request, response)));
  server.listen(idPort, "127.0.0.1");
  return once(server, "listening").then(() => server);
}
let running = await startProvider();

const home = await mkdtemp(join(tmpdir(), "adjutant-oidc-"));
let service = null;
async function start(more = {}) {
  const env = {
    PATH: process.env.PATH, HOME: home, ADJUTANT_SERVE_AUTH: "oidc", ADJUTANT_SERVE_OIDC_ISSUER: issuer, ADJUTANT_SERVE_OIDC_CLIENT_ID: "adjutant",
    ADJUTANT_SERVE_OIDC_CLIENT_SECRET: secret, ADJUTANT_SERVE_OIDC_SCOPES: "groups,email", ADJUTANT_SERVE_ROLES_CLAIM: "groups",
    ADJUTANT_SERVE_OPERATOR_ROLES: "admins", ADJUTANT_SERVE_REQUESTS_PER_MINUTE: "10000", ...more,
  };
  service = spawn(process.env.ADJUTANT_BIN, ["serve", "--json", "-m", "demo", "--bind", `127.0.0.1:${port}`], { env, stdio: ["ignore", "pipe", "pipe"] });
  service.words = "";
  service.stderr.on("data", (words) => (service.words += words));
  const [line] = await Promise.race([once(createInterface(service.stdout), "line"), once(service, "exit").then(() => [null])]);
  assert.ok(line, `it does not serve: ${service.words}`);
  return JSON.parse(line);
}
async function stop() {
  const closed = once(service, "close");
  service.kill("SIGINT");
  await closed;
}
/** Waits for a line of the service's log. Another thread writes it, so it may come after the response. */
async function says(line) {
  const signal = AbortSignal.timeout(60_000);
  while (!line.test(service.words)) await once(service.stderr, "data", { signal }).catch(() => assert.match(service.words, line));
}

/** A minimal browser: cookies by host and port, and redirects. */
class Browser {
  jar = new Map();

  async ask(address, { method = "GET", form, json, headers = {}, origin } = {}) {
    const at = new URL(address, url);
    const own = [...this.jar].filter(([name, kept]) => kept.host === at.host && at.pathname.startsWith(kept.path)).map(([name, kept]) => `${name.split(" ")[1]}=${kept.value}`);
    const sent = { accept: "text/html,application/json", "user-agent": "Test Browser", ...headers };
    if (own.length) sent.cookie = own.join("; ");
    if (origin) sent.origin = origin;
    let body;
    if (form) [body, sent["content-type"]] = [new URLSearchParams(form).toString(), "application/x-www-form-urlencoded"];
    if (json) [body, sent["content-type"]] = [JSON.stringify(json), "application/json"];
    const response = await fetch(at, { method, headers: sent, body, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(";").map((part) => part.trim());
      const [name, value] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      const path = attributes.find((attribute) => /^path=/i.test(attribute))?.slice(5) ?? "/";
      const gone = attributes.some((attribute) => /^max-age=0$/i.test(attribute) || /^expires=thu, 01 jan 1970/i.test(attribute));
      if (gone || value === "") this.jar.delete(`${at.host} ${name}`);
      else this.jar.set(`${at.host} ${name}`, { host: at.host, path, value, attributes });
    }
    const location = response.headers.get("location");
    return { status: response.status, text: await response.text(), location: location && new URL(location, at).href };
  }

  /** Follows redirects until a page is shown or `until` returns true. */
  async follow(address, until = () => false) {
    let at = new URL(address, url).href;
    for (let steps = 0; steps < 20; steps += 1) {
      if (until(at)) return { at };
      const shown = await this.ask(at);
      if (!shown.location) return { at, ...shown };
      at = shown.location;
    }
    throw new Error(`led in circles: ${at}`);
  }

  /** Signs in at the provider, and returns the callback address without opening it. */
  async upToCallback(user) {
    let page = await this.follow("/signin", isCallback);
    for (let steps = 0; steps < 5 && !isCallback(page.at); steps += 1) {
      const action = page.text.match(/action="([^"]+)"/)?.[1];
      assert.ok(action, `the provider shows no form: ${page.at} ${page.text}`);
      const prompt = page.text.match(/name="prompt" value="([^"]+)"/)[1];
      const form = prompt === "login" ? { prompt, login: user, password: "x" } : { prompt };
      const next = await this.ask(new URL(action, page.at), { method: "POST", form });
      page = await this.follow(next.location, isCallback);
    }
    return page.at;
  }

  async signIn(user) {
    return this.ask(await this.upToCallback(user));
  }

  async me() {
    const { status, text } = await this.ask("/v1/me");
    return status === 200 ? JSON.parse(text) : status;
  }
}
const isCallback = (at) => at.startsWith(`${url}/signin/callback`);
const changed = (address, change) => {
  const at = new URL(address);
  change(at.searchParams);
  return at.href;
};

try {
  await start();
  const ways = await new Browser().ask("/v1/session");
  assert.deepEqual(JSON.parse(ways.text), { service: "Adjutant", auth: "oidc", provider: "127.0.0.1", sign_in: "/signin" });

  // Two users sign in. The second is another user, whom a claim of the provider makes an operator.
  const ana = new Browser();
  assert.equal(await ana.me(), 401);
  const back = await ana.signIn("ana");
  assert.deepEqual([back.status, back.location], [303, `${url}/`]);
  const session = [...ana.jar.values()].find((cookie) => cookie.host === `127.0.0.1:${port}` && cookie.path === "/");
  assert.ok(session.attributes.includes("HttpOnly") && session.attributes.includes("SameSite=Strict"), String(session.attributes));
  assert.ok(![...ana.jar.keys()].some((name) => name.includes("signin")), "what was kept for coming back is forgotten");
  const me = await ana.me();
  assert.deepEqual([me.user, me.role, me.auth], ["ana", "user", "oidc"]);
  const olga = new Browser();
  await olga.signIn("olga");
  assert.deepEqual([(await olga.me()).user, (await olga.me()).role], ["olga", "operator"]);
  assert.equal((await olga.ask("/metrics")).status, 200);
  assert.equal((await ana.ask("/metrics")).status, 403);

  // Requests that change something are accepted from the page's origin only.
  const chat = { method: "POST", json: { message: "add buy milk" } };
  assert.equal((await ana.ask("/v1/chat", chat)).status, 403);
  assert.equal((await ana.ask("/v1/chat", { ...chat, origin: url })).status, 200);
  assert.ok((await ana.ask("/v1/tasks")).text.includes("milk") && !(await olga.ask("/v1/tasks")).text.includes("milk"));

  // A program uses a token of Adjutant.
  const made = JSON.parse((await ana.ask("/v1/tokens", { method: "POST", origin: url, json: { name: "a program", days: 1 } })).text);
  const program = async () => (await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${made.token}` } })).status;
  assert.equal(await program(), 200);

  // After a restart users are still signed in, even while the provider is unreachable. New users cannot sign in then.
  await stop();
  await start();
  assert.equal((await ana.me()).user, "ana");
  await stop();
  running.close();
  running.closeAllConnections();
  await start();
  assert.equal((await ana.me()).user, "ana");
  await says(/no one can sign in yet/);
  const ready = await ana.ask("/readyz");
  assert.equal(ready.status, 200);
  assert.match(ready.text, /users cannot sign in/);
  assert.equal((await new Browser().ask("/signin")).location, `${url}/?signin=provider`);
  const plain = await fetch(`${url}/signin`, { headers: { accept: "application/json" }, redirect: "manual" });
  assert.deepEqual([plain.status, plain.headers.get("content-type"), (await plain.json()).code], [503, "application/problem+json", "unavailable"]);
  running = await startProvider();
  // The service notices that the provider is back without any attempt to sign in.
  const isAway = async () => (await ana.ask("/readyz")).text.includes("users cannot sign in");
  for (let left = 100; left > 0 && (await isAway()); left -= 1) await new Promise((done) => setTimeout(done, 200));
  assert.equal(await isAway(), false);
  const later = new Browser();
  await later.signIn("ana");
  assert.equal((await later.me()).user, "ana");

  // Forged, stale or stolen responses do not sign anyone in.
  const refused = async (browser, address, why) => {
    const answer = await browser.ask(address);
    assert.deepEqual([answer.status, answer.location], [303, `${url}/?signin=${why}`], address);
    assert.equal(await browser.me(), 401);
  };
  const fresh = async (user = "eve") => {
    const browser = new Browser();
    return [browser, await browser.upToCallback(user)];
  };
  let [eve, address] = await fresh();
  await refused(eve, changed(address, (query) => query.set("state", "forged")), "stale");
  [eve, address] = await fresh();
  await refused(eve, changed(address, (query) => query.delete("state")), "stale");
  [eve, address] = await fresh();
  await refused(new Browser(), address, "stale"); // started in another browser
  [eve, address] = await fresh();
  await refused(eve, changed(address, (query) => query.set("code", "forged")), "stale");
  [eve, address] = await fresh();
  await refused(eve, changed(address, (query) => query.set("iss", "https://evil.example")), "provider");
  [eve, address] = await fresh();
  await refused(eve, changed(address, (query) => query.delete("iss")), "provider"); // this provider promises to send `iss`
  [eve, address] = await fresh();
  await refused(eve, changed(address, (query) => { query.delete("code"); query.set("error", "access_denied"); query.set("error_description", "<b>no</b>"); }), "denied");
  // An authorization code can be used once.
  [eve, address] = await fresh();
  const cookies = new Map(eve.jar);
  assert.equal((await eve.ask(address)).location, `${url}/`);
  eve.jar = new Map([...cookies].filter(([name]) => !name.endsWith(` adjutant-${port}`)));
  assert.equal((await eve.ask(address)).location, `${url}/?signin=stale`);
  // The nonce of another sign-in: the browser's state cookie is replaced by that one's.
  [eve, address] = await fresh();
  const kept = [...eve.jar.values()].find((cookie) => cookie.path === "/signin");
  const parts = kept.value.split(".");
  kept.value = [parts[0], "A".repeat(43), parts[2]].join(".");
  await refused(eve, address, "refused");
  // The verifier of another sign-in: the provider itself refuses it.
  [eve, address] = await fresh();
  const again = [...eve.jar.values()].find((cookie) => cookie.path === "/signin");
  again.value = [...again.value.split(".").slice(0, 2), "B".repeat(43)].join(".");
  await refused(eve, address, "stale");
  // A user name that is reserved for the machine.
  const [local, asLocal] = await fresh("local");
  await refused(local, asLocal, "refused");
  // The service never redirects to another site, whatever address is requested.
  for (const more of ["?next=https://evil.example", "?redirect_uri=https://evil.example", "//evil.example"]) {
    const led = (await new Browser().ask(`${url}/signin${more}`)).location;
    assert.ok(led === null || (led.startsWith(issuer) && new URL(led).searchParams.get("redirect_uri") === `${url}/signin/callback`), `${more} ${led}`);
  }
  // A response that is too long, or none, is reported as the provider's failure.
  for (const body of ["x".repeat(2 * 1024 * 1024), "{}", "<html>"]) {
    [eve, address] = await fresh();
    interfere = (request, response) => request.url === "/token" && (response.end(body), true);
    await refused(eve, address, "provider");
    interfere = null;
  }

  // Signing out ends the session here and redirects to the provider's logout; tokens of programs stay valid.
  const copied = Object.assign(new Browser(), { jar: new Map(ana.jar) });
  const out = await ana.ask("/v1/session", { method: "DELETE", origin: url });
  const there = new URL(JSON.parse(out.text).provider_sign_out);
  assert.ok(there.href.startsWith(`${issuer}/session/end`) && there.searchParams.get("post_logout_redirect_uri") === `${url}/`, there.href);
  assert.deepEqual([await ana.me(), await copied.me(), await program()], [401, 401, 200]);
  assert.equal((await ana.ask(there)).status, 200);
  // An operator locks a user out.
  assert.equal((await olga.ask("/v1/admin/access/ana", { method: "DELETE", origin: url })).status, 200);
  assert.deepEqual([await later.me(), await program()], [401, 401]);

  // Users by verified e-mail address, and the vault's owner by that name.
  await stop();
  await start({ ADJUTANT_SERVE_OIDC_USER_CLAIM: "email" });
  const named = new Browser();
  await named.signIn("ana");
  assert.equal((await named.me()).user, "ana@example.com");
  const [mallory, asMallory] = await fresh("mallory");
  await refused(mallory, asMallory, "refused");
  await says(/was not signed in: the issuer does not say that the e-mail address was verified/);
  await stop();
  assert.ok(!service.words.includes(secret));
  console.log("signed in, restarted, signed out; nothing forged was taken");
} finally {
  service?.kill("SIGKILL");
  running.close();
  running.closeAllConnections();
  await rm(home, { recursive: true, force: true });
}

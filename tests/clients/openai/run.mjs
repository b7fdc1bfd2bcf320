// The official openai client for JavaScript and Vercel's AI SDK against a running service, and the requests that Open
// WebUI sends.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import OpenAI from "openai";
import { responses } from "./responses.mjs";
import { aiSdk } from "./with_ai_sdk.mjs";

const url = process.env.ADJUTANT_URL;
const token = process.env.ADJUTANT_TOKEN;
const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });
const model = "adjutant";
const user = (content) => ({ role: "user", content });
const assistant = (content) => ({ role: "assistant", content });

const ask = (messages, rest = {}) => client.chat.completions.create({ model, messages, ...rest });
const contentOf = (completion) => completion.choices[0].message.content;

// Joins all chunks of a stream.
async function streamed(messages, rest = {}) {
  const out = { content: "", reasoning: "", usage: undefined, finish: [] };
  for await (const chunk of await ask(messages, { stream: true, ...rest })) {
    assert.equal(chunk.object, "chat.completion.chunk");
    const choice = chunk.choices[0];
    out.content += choice?.delta.content ?? "";
    out.reasoning += choice?.delta.reasoning_content ?? "";
    if (choice?.finish_reason) out.finish.push(choice.finish_reason);
    out.usage = chunk.usage ?? out.usage;
  }
  return out;
}

async function tasks() {
  const answer = await fetch(`${url}/v1/tasks`, { headers: { Authorization: `Bearer ${token}` } });
  assert.equal(answer.status, 200);
  return (await answer.json()).tasks.map((task) => task.description);
}

// Starts another service with two users, killed at the end.
async function withService(home, use) {
  const environment = { cwd: home, env: { PATH: process.env.PATH, HOME: home } };
  const adjutant = process.env.ADJUTANT_BIN;
  const tokens = ["ana", "eve"].map((name) => {
    const file = join(home, `${name}.token`);
    if (!existsSync(file)) {
      const made = execFileSync(adjutant, ["token", "create", "--user", name, "--json"], { ...environment, encoding: "utf8" });
      writeFileSync(file, JSON.parse(made).token);
    }
    return readFileSync(file, "utf8");
  });
  const script = `scripted:${join(process.cwd(), "script.jsonl")}`;
  const service = spawn(adjutant, ["serve", "--json", "--bind", "127.0.0.1:0", "-m", script], environment);
  try {
    const [line] = await once(createInterface({ input: service.stdout }), "line");
    await use(JSON.parse(line).url, tokens);
  } finally {
    const ended = once(service, "exit");
    service.kill("SIGKILL");
    await ended;
  }
}

async function failsWith(kind, expected, promise) {
  const error = await promise.then(
    () => assert.fail("it did not fail"),
    (error) => error,
  );
  assert.ok(error instanceof kind, `${error?.constructor?.name}: ${error}`);
  for (const [key, value] of Object.entries(expected)) assert.equal(error[key], value, `${key} of ${error}`);
  return error;
}

const checks = {
  async "the models are listed and found"() {
    const models = await client.models.list();
    assert.deepEqual(
      models.data.map((model) => model.id),
      ["adjutant", "adjutant-plain"],
    );
    assert.equal((await client.models.retrieve("adjutant-plain")).id, "adjutant-plain");
  },

  async "a question is answered, with its tokens"() {
    const answer = await ask([user("hello")], { user: "somebody-else", temperature: 0.5, seed: 1 });
    assert.equal(contentOf(answer), "Hello, what can I do for you?");
    assert.equal(answer.choices[0].message.reasoning_content, "A greeting.");
    assert.equal(answer.choices[0].finish_reason, "stop");
    assert.deepEqual([answer.usage.prompt_tokens, answer.usage.completion_tokens, answer.usage.total_tokens], [12, 8, 20]);
    assert.ok(answer._request_id);
  },

  async "a stream says the same, and its tokens if asked"() {
    const stream = await streamed([user("hello")], { stream_options: { include_usage: true } });
    assert.equal(stream.content, "Hello, what can I do for you?");
    assert.equal(stream.reasoning, "A greeting.");
    assert.deepEqual(stream.finish, ["stop"]);
    assert.equal(stream.usage.total_tokens, 20);
    assert.equal((await streamed([user("hello")])).usage, undefined);
  },

  async "the client's stream helper reads it"() {
    const runner = client.chat.completions.stream({ model, messages: [user("hello")] });
    assert.equal(await runner.finalContent(), "Hello, what can I do for you?");
  },

  async "tools run on the server and are told"() {
    const stream = await streamed([user("add buy milk")]);
    assert.equal(stream.content, "One moment.\n\nDone.");
    assert.match(stream.reasoning, /^⚙ add_task \{"description":"buy milk"\}\n✓ add_task \d+ ms\n$/);
    assert.deepEqual(await tasks(), ["buy milk"]);
  },

  async "a deletion waits for a yes in the next message"() {
    const messages = [user("delete milk")];
    const question = contentOf(await ask(messages));
    assert.match(question, /buy milk.*yes or no/);
    const unclear = [...messages, assistant(question), user("why?")];
    // The question is asked again, behind a sentence about what was not understood.
    const again = contentOf(await ask(unclear));
    assert.ok(again.endsWith(question) && again !== question, again);
    assert.deepEqual(await tasks(), ["buy milk"]);
    const yes = [...unclear, assistant(again), user("yes")];
    const stream = await streamed(yes);
    assert.equal(stream.content, "Done.");
    assert.match(stream.reasoning, /⚙ delete_task/);
    assert.deepEqual(await tasks(), []);
    assert.match(contentOf(await ask(yes)), /answered before/);
    assert.equal(contentOf(await ask([user("something else"), assistant("Hm?"), user("yes")])), "Yes to what?");
  },

  async "an answer has the form that was asked for"() {
    const schema = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
    const response_format = { type: "json_schema", json_schema: { name: "place", strict: true, schema } };
    const parsed = await client.chat.completions.parse({ model, messages: [user("where?")], response_format });
    assert.deepEqual(JSON.parse(contentOf(parsed)), { city: "Oslo" });
  },

  async "tools of the client are called, whole and in pieces"() {
    const city = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
    const tools = [{ type: "function", function: { name: "get_weather", description: "The weather in a city.", parameters: city } }];
    const messages = [user("the weather in Oslo")];
    const answer = await ask(messages, { tools });
    assert.equal(answer.choices[0].finish_reason, "tool_calls");
    assert.equal(answer.choices[0].message.tool_calls[0].function.arguments, '{"city":"Oslo"}');
    // The client's own tool loop: it streams, joins the calls, runs the function and sends the result.
    const runner = client.chat.completions.runTools({
      model, messages, stream: true,
      tools: [{ type: "function", function: { ...tools[0].function, parse: JSON.parse, function: ({ city }) => `${city}: sunny` } }],
    });
    assert.equal(await runner.finalContent(), "It is sunny there.");
  },

  ...responses({ client, model, tasks, failsWith }),
  ...aiSdk({ url, token, model, tasks }),

  async "errors are of the client's own types"() {
    const anonymous = new OpenAI({ baseURL: `${url}/v1`, apiKey: "wrong", maxRetries: 0 });
    await failsWith(OpenAI.AuthenticationError, { status: 401, code: "unauthorized" }, anonymous.models.list());
    const unknown = ask([user("hello")], { model: "gpt-4o" });
    await failsWith(OpenAI.NotFoundError, { status: 404, code: "model_not_found", param: "model" }, unknown);
    await failsWith(OpenAI.NotFoundError, { code: "model_not_found" }, client.models.retrieve("gpt-4o"));
    await failsWith(OpenAI.BadRequestError, { status: 400, param: "n" }, ask([user("hello")], { n: 2 }));
    await failsWith(OpenAI.BadRequestError, { param: "messages" }, ask([]));
    const image = [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }] }];
    await failsWith(OpenAI.BadRequestError, { param: "messages[0].content[0]" }, ask(image));
    for (const stream of [false, true]) {
      const limited = ask([user("too often")], { stream });
      const error = await failsWith(OpenAI.RateLimitError, { status: 429, code: "rate_limit", type: "rate_limit_error" }, limited);
      assert.equal(error.headers.get("retry-after"), "7");
    }
    await failsWith(OpenAI.InternalServerError, { status: 504, code: "timeout" }, ask([user("late")]));
  },

  async "an error in the middle of a stream is one"() {
    await failsWith(OpenAI.APIError, { code: "truncated" }, streamed([user("break off")]));
  },

  async "what was half done is not sent again by the client"() {
    const retrying = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 3 });
    const half = retrying.chat.completions.create({ model, messages: [user("add and fail")] });
    await failsWith(OpenAI.InternalServerError, { status: 503, code: "server" }, half);
    assert.deepEqual(await tasks(), ["buy bread"]);
  },

  async "a question survives a restart, and is one user's alone"() {
    const home = mkdtempSync(join(tmpdir(), "adjutant-openai-"));
    try {
      const messages = [user("delete milk")];
      let question;
      await withService(home, async (url, tokens) => {
        const [ana, eve] = tokens.map((apiKey) => new OpenAI({ baseURL: `${url}/v1`, apiKey, maxRetries: 0 }));
        const create = (client, messages) => client.chat.completions.create({ model, messages });
        for (const client of [ana, eve]) await create(client, [user("add buy milk")]);
        question = contentOf(await create(ana, messages));
        const yes = [...messages, assistant(question), user("yes")];
        assert.equal(contentOf(await create(eve, yes)), "Yes to what?");
      });
      await withService(home, async (url, [token]) => {
        const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: token, maxRetries: 0 });
        const yes = [...messages, assistant(question), user("yes")];
        assert.equal(contentOf(await client.chat.completions.create({ model, messages: yes })), "Done.");
      });
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  },

  async "Open WebUI lists, chats and asks for a title"() {
    const headers = {
      Authorization: `Bearer ${token}`,
      "Content-Type": "application/json",
      "X-OpenWebUI-User-Name": "Ana",
      "X-OpenWebUI-User-Id": "6f9c",
      "X-OpenWebUI-User-Email": "ana@example.org",
      "X-OpenWebUI-User-Role": "admin",
      "X-OpenWebUI-Chat-Id": "c0ffee",
    };
    const models = await fetch(`${url}/v1/models`, { headers });
    assert.equal((await models.json()).data[0].object, "model");
    const post = (body) =>
      fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify({ model, ...body }) });
    const chat = await post({
      stream: true,
      stream_options: { include_usage: true },
      messages: [{ role: "system", content: "User Context:\n\n" }, user("hello")],
      metadata: { chat_id: "c0ffee", variables: { "{{USER_NAME}}": "Ana" } },
      features: { web_search: false },
    });
    assert.match(chat.headers.get("content-type"), /^text\/event-stream/);
    const lines = (await chat.text()).split("\n").filter((line) => line.startsWith("data: "));
    assert.equal(lines.at(-1), "data: [DONE]");
    const chunks = lines.slice(0, -1).map((line) => JSON.parse(line.slice(6)));
    assert.equal(chunks.map((chunk) => chunk.choices[0]?.delta.content ?? "").join(""), "Hello, what can I do for you?");
    const before = await tasks();
    const title =
      "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.\n### Guidelines:\n- Prioritize accuracy.\n### Chat History:\n<chat_history>\nUSER: add buy milk\nASSISTANT: Done.\n</chat_history>";
    const answer = await (await post({ stream: false, max_completion_tokens: 1000, messages: [user(title)] })).json();
    assert.equal(contentOf(answer), '{"title": "Milk"}');
    assert.deepEqual(await tasks(), before, "a quotation adds nothing");
    const threads = await (await fetch(`${url}/v1/threads`, { headers })).json();
    assert.deepEqual(threads.threads, []);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    await check();
    console.log(`ok    ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL  ${name}\n${error?.stack ?? error}`);
  }
}
process.exit(failed === 0 ? 0 : 1);

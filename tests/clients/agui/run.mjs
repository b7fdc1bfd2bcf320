// The official AG-UI client against a running service. The client defines the protocol: what it reads, keeps and
// refuses.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";
import { EventSchema } from "@ag-ui/core/schemas";

const url = process.env.ADJUTANT_URL;
const authorization = `Bearer ${process.env.ADJUTANT_TOKEN}`;
// The client warns about every unknown member, and logs failures that these checks cause on purpose.
const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = () => {};

let threads = 0;
function newAgent() {
  threads += 1;
  return new HttpAgent({
    url: `${url}/v1/runs`,
    headers: { Authorization: authorization },
    threadId: `agui-${process.pid}-${threads}`,
  });
}

// Runs the agent, and returns its events as they arrived, each validated by the protocol's own schema.
async function run(agent, words, options = {}) {
  if (words !== undefined) {
    agent.messages.push({ id: crypto.randomUUID(), role: "user", content: words });
  }
  const events = [];
  const result = await agent.runAgent(options, { onEvent: ({ event }) => void events.push(event) });
  for (const event of events) EventSchema.parse(event);
  return { events, result };
}

const last = (events) => events.at(-1);
const text = (message) => message?.content;

const checks = {
  async "a message is answered, control characters stay data"() {
    const agent = newAgent();
    const { events, result } = await run(agent, "hello");
    assert.equal(last(events).type, "RUN_FINISHED");
    assert.deepEqual(last(events).outcome, { type: "success" });
    const answer = agent.messages.at(-1);
    assert.equal(answer.role, "assistant");
    assert.equal(text(answer), "Hello \u001b[31mthere\u0007 & welcome.");
    assert.deepEqual(result.newMessages.filter(({ role }) => role === "assistant").length, 1);
    assert.ok(events.some(({ type }) => type === "REASONING_MESSAGE_CONTENT"));
    assert.deepEqual(agent.state.tasks, []);
  },

  async "a tool runs, and the tasks follow"() {
    const agent = newAgent();
    const { events } = await run(agent, "please add green tea");
    assert.deepEqual(agent.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    const [call] = agent.messages[1].toolCalls;
    assert.equal(call.function.name, "add_task");
    assert.deepEqual(JSON.parse(call.function.arguments), { description: "green tea" });
    assert.equal(JSON.parse(agent.messages[2].content).success, true);
    assert.equal(text(agent.messages[3]), "Added.");
    assert.deepEqual(agent.state.tasks.map(({ description }) => description), ["green tea"]);
    assert.ok(events.some(({ type }) => type === "STATE_DELTA"));
    const decision = events.find(({ type, name }) => type === "CUSTOM" && name === "decision").value;
    assert.equal(decision.outcome, "SUCCESS:TASK_COMPLETED");
  },

  async "what a turn ends with is said once, now and to who comes back"() {
    const agent = newAgent();
    await run(agent, "note the blue tea");
    const answers = agent.messages.filter(({ role, content }) => role === "assistant" && content).map(text);
    assert.equal(answers.length, 1, "the model's claim is not shown");
    assert.match(answers[0], /was not carried out/);
    const back = new HttpAgent({ url: agent.url, headers: agent.headers, threadId: agent.threadId });
    await run(back, "hello");
    // The client keeps reasoning messages where they arrived, and gives user messages ids of its own.
    const words = ({ messages }) => messages.filter(({ role }) => role !== "reasoning").map(({ id, role, content }) => role === "user" ? content : [id, content]);
    const before = words(agent);
    assert.deepEqual(words(back).slice(0, before.length), before);
  },

  async "a deletion waits; a no keeps the task"() {
    const agent = newAgent();
    await run(agent, "drop the green tea");
    const [interrupt] = agent.pendingInterrupts;
    assert.equal(agent.pendingInterrupts.length, 1);
    assert.equal(interrupt.reason, "confirmation");
    assert.ok(interrupt.message.includes("green tea"));
    assert.ok(new Date(interrupt.expiresAt) > new Date());
    // The client itself refuses to continue without an answer.
    await assert.rejects(run(agent, "hello"), /pending interrupt/);
    agent.messages.pop();
    const resume = buildResumeArray(agent.pendingInterrupts, {
      [interrupt.id]: { status: "resolved", payload: { approved: false } },
    });
    await run(agent, undefined, { resume });
    assert.deepEqual(agent.pendingInterrupts, []);
    assert.equal(text(agent.messages.at(-1)), "It stays.");
    assert.deepEqual(agent.state.tasks.map(({ description }) => description), ["green tea"]);
  },

  async "what is given up is not done"() {
    const agent = newAgent();
    await run(agent, "drop the green tea");
    const resume = buildResumeArray(agent.pendingInterrupts, {
      [agent.pendingInterrupts[0].id]: { status: "cancelled" },
    });
    await run(agent, undefined, { resume });
    assert.deepEqual(agent.pendingInterrupts, []);
    assert.equal(agent.state.tasks.length, 1);
  },

  async "the service refuses what the client would not send"() {
    const agent = newAgent();
    await run(agent, "drop the green tea");
    const [interrupt] = agent.pendingInterrupts;
    agent.pendingInterrupts = [];
    const { events } = await run(agent, "hello");
    assert.deepEqual(events.map(({ type }) => type), ["RUN_ERROR"]);
    assert.equal(last(events).code, "pending_confirmation");
    const answer = (payload) => [{ interruptId: interrupt.id, status: "resolved", payload }];
    for (const payload of [{ approved: "yes" }, { approved: 1 }, {}, { approved: true, verdict: "done" }]) {
      await assert.rejects(run(agent, undefined, { resume: answer(payload) }), /HTTP 422/);
    }
    assert.equal(agent.state.tasks.length, 1);
    await run(agent, undefined, { resume: answer({ approved: false }) });
  },

  async "a yes may come with other arguments, which are checked"() {
    const agent = newAgent();
    await run(agent, "add black tea");
    const black = agent.state.tasks.find(({ description }) => description === "black tea");
    await run(agent, "drop the green tea");
    const answer = (editedArgs) =>
      buildResumeArray(agent.pendingInterrupts, {
        [agent.pendingInterrupts[0].id]: { status: "resolved", payload: { approved: true, editedArgs } },
      });
    // Invalid arguments: nothing is executed, and confirmation is requested again.
    await run(agent, undefined, { resume: answer({ task_id: "no such task" }) });
    assert.equal(agent.pendingInterrupts.length, 1);
    assert.equal(agent.state.tasks.length, 2);
    // Valid arguments whose meaning nobody has confirmed yet: confirmation is requested again.
    await run(agent, undefined, { resume: answer({ task_id: black.id }) });
    assert.equal(agent.pendingInterrupts.length, 1);
    assert.match(agent.pendingInterrupts[0].message, /black tea/);
    assert.equal(agent.state.tasks.length, 2);
    await run(agent, undefined, { resume: answer(undefined) });
    assert.deepEqual(agent.state.tasks.map(({ description }) => description), ["green tea"]);
  },

  async "two calls wait, and one answer is not enough"() {
    const agent = newAgent();
    await run(agent, "add black tea");
    await run(agent, "drop both");
    assert.equal(agent.pendingInterrupts.length, 2);
    const [green, black] = agent.pendingInterrupts;
    const yes = { status: "resolved", payload: { approved: true } };
    agent.pendingInterrupts = [green];
    const { events } = await run(agent, undefined, {
      resume: buildResumeArray([green], { [green.id]: yes }),
    });
    assert.equal(last(events).code, "pending_confirmation");
    agent.pendingInterrupts = [green, black];
    const answers = { [green.id]: { status: "resolved", payload: { approved: false } }, [black.id]: yes };
    await run(agent, undefined, { resume: buildResumeArray([green, black], answers) });
    assert.deepEqual(agent.state.tasks.map(({ description }) => description), ["green tea"]);
  },

  async "a yes sent twice deletes once"() {
    const agent = newAgent();
    await run(agent, "drop the green tea");
    const interrupts = agent.pendingInterrupts;
    const resume = buildResumeArray(interrupts, {
      [interrupts[0].id]: { status: "resolved", payload: { approved: true } },
    });
    const runId = crypto.randomUUID();
    const first = await run(agent, undefined, { runId, resume });
    assert.deepEqual(agent.state.tasks, []);
    const again = await run(agent, undefined, { runId, resume });
    assert.equal(last(first.events).outcome.type, "success");
    // The service already has this run: it sends the outcome, but repeats no other event.
    assert.deepEqual(again.events.map(({ type }) => type), ["RUN_STARTED", "MESSAGES_SNAPSHOT", "CUSTOM", "RUN_FINISHED"]);
    assert.deepEqual([text(agent.messages.at(-1)), agent.state.tasks], ["Gone.", []]);
    const anew = await run(agent, undefined, { resume });
    assert.equal(last(anew.events).outcome.type, "success");
    assert.equal(anew.events.filter(({ type }) => type === "TOOL_CALL_RESULT").length, 0);
  },

  async "a model that fails is an error with our code"() {
    const agent = newAgent();
    const { events } = await run(agent, "no quota left");
    assert.equal(last(events).type, "RUN_ERROR");
    assert.equal(last(events).code, "quota");
    const broken = await run(agent, "now break off");
    assert.equal(last(broken.events).code, "truncated");
    // The open message is ended in order, and the conversation can continue.
    const next = await run(agent, "hello");
    assert.equal(last(next.events).type, "RUN_FINISHED");
  },

  async "the messages stay in order over many runs"() {
    const agent = newAgent();
    await run(agent, "hello one");
    await run(agent, "please add green tea");
    await run(agent, "hello two");
    const shown = agent.messages.filter(({ role }) => role !== "reasoning");
    assert.deepEqual(
      shown.map(({ role }) => role),
      ["user", "assistant", "user", "assistant", "tool", "assistant", "user", "assistant"],
    );
    assert.deepEqual(shown.filter(({ role }) => role === "user").map(text), [
      "hello one", "please add green tea", "hello two",
    ]);
    assert.equal(new Set(agent.messages.map(({ id }) => id)).size, agent.messages.length);
  },

  async "a client that follows is sent what each run adds, and another one everything"() {
    const agent = newAgent();
    const kinds = [];
    for (const words of ["hello", "please add black tea", "drop the black tea"]) {
      kinds.push(...(await run(agent, words)).events.map(({ type }) => type));
    }
    const resume = buildResumeArray(agent.pendingInterrupts, {
      [agent.pendingInterrupts[0].id]: { status: "resolved", payload: { approved: false } },
    });
    kinds.push(...(await run(agent, undefined, { resume })).events.map(({ type }) => type));
    kinds.push(...(await run(agent, "hello")).events.map(({ type }) => type));
    assert.equal(kinds.filter((type) => type === "MESSAGES_SNAPSHOT").length, 0);
    assert.equal(kinds.filter((type) => type === "STATE_SNAPSHOT").length, 1, "it had none at first");
    const other = new HttpAgent({ url: `${url}/v1/runs`, headers: { Authorization: authorization }, threadId: agent.threadId });
    await run(other, "hello");
    const known = ({ role, content, toolCalls, toolCallId }) => ({ role, content, toolCalls, toolCallId });
    const visible = (messages) => messages.filter(({ role }) => role !== "reasoning").map(known);
    assert.deepEqual(visible(other.messages).slice(0, -2), visible(agent.messages));
  },

  async "a client that goes away finds the whole run when it comes back"() {
    const agent = newAgent();
    const runId = crypto.randomUUID();
    const leaving = new AbortController();
    agent.messages.push({ id: "u", role: "user", content: "take your time" });
    const body = JSON.stringify({ threadId: agent.threadId, runId, messages: agent.messages });
    const headers = { Authorization: authorization, "Content-Type": "application/json", Accept: "text/event-stream" };
    const response = await fetch(`${url}/v1/runs`, { method: "POST", headers, body, signal: leaving.signal });
    const reader = response.body.getReader();
    await reader.read();
    leaving.abort();
    const frames = await replay(runId);
    assert.equal(frames[0].event.type, "RUN_STARTED");
    assert.equal(last(frames).event.type, "RUN_FINISHED");
    const deltas = frames.filter(({ event }) => event.type === "TEXT_MESSAGE_CONTENT").map(({ event }) => event.delta);
    assert.equal(deltas.join(""), "one two three four five six seven eight nine ten");
    // From the middle of the stream, and by the id of the decision.
    const decision = frames.find(({ event }) => event.name === "decision").event.value.decision_id;
    assert.deepEqual(await replay(decision, frames[3].id), frames.slice(4));
    assert.equal((await fetchEvents(runId, last(frames).id)).status, 204);
    assert.equal((await fetchEvents(crypto.randomUUID())).status, 404);
  },

  async "a tool of the front end goes round, and what it knows is read"() {
    const agent = newAgent();
    const parameters = { type: "object", properties: { theme: { type: "string" } }, required: ["theme"] };
    const tools = [{ name: "setTheme", description: "Sets the theme of the page.", parameters }];
    const context = [{ description: "The theme now", value: "light" }];
    const { events } = await run(agent, "please make it dark", { tools, context });
    const answer = agent.messages.at(-1);
    assert.equal(answer.toolCalls[0].function.name, "setTheme");
    assert.deepEqual(last(events).outcome, { type: "success", pendingToolCallIds: [answer.toolCalls[0].id] });
    assert.ok(!events.some(({ type }) => type === "TOOL_CALL_RESULT"));
    agent.messages.push({ id: crypto.randomUUID(), role: "tool", toolCallId: answer.toolCalls[0].id, content: "it is dark" });
    const { events: rest } = await run(agent, undefined, { tools, context });
    assert.deepEqual(last(rest).outcome, { type: "success" });
    assert.equal(text(agent.messages.at(-1)), "Dark it is.");
    assert.deepEqual(agent.messages.map(({ role }) => role), ["user", "assistant", "tool", "assistant"]);
    const { events: next } = await run(agent, "hello", { tools });
    assert.ok(!next.some(({ type }) => type === "MESSAGES_SNAPSHOT"), "it follows");
    await run(agent, "what do you know of my page?", { context: [{ description: "The page", value: "page 7 is open" }] });
    assert.equal(text(agent.messages.at(-1)), "Page 7.");
  },

  async "a question and a tool of the front end are one outcome"() {
    const agent = newAgent();
    const tools = [{ name: "setTheme", description: "Sets the theme of the page.", parameters: { type: "object", properties: {} } }];
    await run(agent, "please add red tea");
    const { events } = await run(agent, "drop it and make it dark", { tools });
    assert.equal(last(events).outcome.type, "interrupt");
    const call = agent.messages.flatMap(({ toolCalls }) => toolCalls ?? []).find((call) => call.function.name === "setTheme");
    agent.messages.push({ id: crypto.randomUUID(), role: "tool", toolCallId: call.id, content: "it is dark" });
    const yes = { status: "resolved", payload: { approved: true } };
    const resume = buildResumeArray(agent.pendingInterrupts, { [agent.pendingInterrupts[0].id]: yes });
    const { events: rest } = await run(agent, undefined, { tools, resume });
    assert.deepEqual(last(rest).outcome, { type: "success" });
    assert.ok(!agent.state.tasks.some(({ description }) => description === "red tea"));
  },

  async "a run is stopped"() {
    const agent = newAgent();
    const runId = crypto.randomUUID();
    let stopped;
    agent.messages.push({ id: "u", role: "user", content: "wait for ever" });
    const events = [];
    await agent.runAgent({ runId }, {
      onEvent: ({ event }) => {
        events.push(event);
        if (event.type === "TEXT_MESSAGE_CONTENT") {
          const headers = { Authorization: authorization };
          stopped ??= fetch(`${url}/v1/runs/${runId}/cancel`, { method: "POST", headers });
        }
      },
    });
    assert.equal((await stopped).status, 202);
    assert.deepEqual(last(events).outcome, { type: "cancelled" });
  },
  async "a run outlives the process that began it"() {
    const home = await mkdtemp(join(tmpdir(), "adjutant-agui-"));
    try {
      const first = await serve(home);
      const runId = crypto.randomUUID();
      const messages = [{ id: "u", role: "user", content: "take your time" }];
      const body = JSON.stringify({ threadId: "t", runId, messages });
      const response = await fetch(`${first.url}/v1/runs`, {
        method: "POST",
        headers: { ...first.headers, "Content-Type": "application/json", Accept: "text/event-stream" },
        body,
      });
      // The first event means that the run was accepted; the model takes longer than that.
      const reader = response.body.getReader();
      await reader.read();
      first.process.kill("SIGKILL");
      await once(first.process, "exit");
      await assert.rejects(async () => { while (!(await reader.read()).done); });
      const second = await serve(home);
      const frames = await replay(runId, undefined, { ...second, query: "?thread_id=t" });
      assert.deepEqual(frames.map(({ event }) => event.type),
        ["RUN_STARTED", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "STATE_SNAPSHOT", "CUSTOM", "RUN_FINISHED"]);
      assert.equal(frames[2].event.delta, "one two three four five six seven eight nine ten");
      second.process.kill();
      await once(second.process, "exit");
    } finally {
      await rm(home, { recursive: true, force: true });
    }
  },
};

// Starts another service with the data in a given folder.
async function serve(home) {
  const model = `scripted:${fileURLToPath(new URL("script.jsonl", import.meta.url))}`;
  const child = spawn(process.env.ADJUTANT_BIN, ["serve", "--json", "--bind", "127.0.0.1:0", "-m", model], {
    cwd: home,
    env: { HOME: home, PATH: process.env.PATH },
    stdio: ["ignore", "pipe", "ignore"],
  });
  process.once("exit", () => child.kill("SIGKILL"));
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  const { url, token } = JSON.parse(line);
  return { process: child, url, headers: { Authorization: `Bearer ${token}` } };
}

function fetchEvents(runId, lastEventId, service = { url, headers: { Authorization: authorization } }) {
  const headers = { ...service.headers };
  if (lastEventId !== undefined) headers["Last-Event-ID"] = lastEventId;
  return fetch(`${service.url}/v1/runs/${runId}/events${service.query ?? ""}`, { headers });
}

// Returns every event of a run from a position on, with its id.
async function replay(runId, lastEventId, service) {
  const response = await fetchEvents(runId, lastEventId, service);
  assert.equal(response.status, 200);
  const frames = (await response.text()).split("\n\n").filter((frame) => frame.includes("data: "));
  return frames.map((frame) => {
    const line = (name) => frame.split("\n").find((line) => line.startsWith(`${name}: `)).slice(name.length + 2);
    return { id: line("id"), event: EventSchema.parse(JSON.parse(line("data"))) };
  });
}

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
if (warnings.length > 0) {
  failed += 1;
  console.log(`FAIL  the client had to complain:\n${[...new Set(warnings)].join("\n")}`);
}
process.exit(failed === 0 ? 0 : 1);

// A program that uses the service through types generated from its description. Lines that must not compile are marked,
// so that the compiler reports them if they do.
import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "adjutant-api";

const client = createClient<paths>({
  baseUrl: process.env["ADJUTANT_URL"]!,
  headers: { Authorization: `Bearer ${process.env["ADJUTANT_TOKEN"]}` },
});

function present<T>(value: T | undefined): T {
  assert.notEqual(value, undefined);
  return value as T;
}

// The current user, and the available tools.
const me = present((await client.GET("/v1/me")).data);
const names: string[] = me.tools.map((tool) => tool.name);
assert.ok(names.includes("add_task"));

// A conversation, with an id that the client has chosen.
for (const thread_id of ["one", "two", "three"]) {
  const { data, error } = await client.POST("/v1/chat", {
    body: { message: `please add ${thread_id} tea`, thread_id },
    params: { header: { "Idempotency-Key": crypto.randomUUID() } },
  });
  assert.equal(error, undefined);
  const outcome: string = present(data).outcome;
  assert.equal(outcome, "SUCCESS:TASK_COMPLETED");
}

// Tasks with their types.
const { data: list } = await client.GET("/v1/tasks", { params: { query: { status: "pending", limit: 2 } } });
const described: string[] = present(list).tasks.map((task) => task.description);
assert.deepEqual(described, ["two tea", "three tea"]);
const cursor = present(list).next_cursor;
assert.ok(typeof cursor === "string");
const { data: before } = await client.GET("/v1/tasks", { params: { query: { limit: 2, cursor } } });
assert.deepEqual(present(before).tasks.map((task) => [task.id, task.completed]), [["1", false]]);
assert.equal(present(before).next_cursor, null);

// Conversations, page by page.
const titles: string[] = [];
let page: string | null | undefined;
do {
  const query = page ? { limit: 2, cursor: page } : { limit: 2 };
  const threads = present((await client.GET("/v1/threads", { params: { query } })).data);
  assert.ok(threads.threads.length <= 2);
  titles.push(...threads.threads.map((thread) => thread.title));
  page = threads.next_cursor;
} while (page);
assert.equal(titles.length, 3);
const messages = present(
  (await client.GET("/v1/threads/{thread_id}/messages", { params: { path: { thread_id: "one" } } })).data,
);
const roles: ("user" | "assistant" | "tool")[] = messages.messages.map((message) => message.role);
assert.deepEqual(roles, ["user", "assistant", "tool", "assistant"]);

// A call that needs confirmation waits, and is confirmed.
const asked = present((await client.POST("/v1/chat", { body: { message: "drop the two tea", thread_id: "two" } })).data);
const pending: components["schemas"]["Pending"] = present(asked.pending[0]);
assert.equal(pending.kind, "confirmation");
const waiting = present((await client.GET("/v1/pending")).data);
assert.deepEqual(waiting.pending.map((call) => call.interrupt_id), [pending.interrupt_id]);
const done = await client.POST("/v1/chat", {
  body: { thread_id: "two", resume: [{ interrupt_id: pending.interrupt_id, approved: true }] },
});
assert.equal(present(done.data).content, "Gone.");

// The same with a tool and without a model: the problem document has the pending call.
const refused = await client.POST("/v1/tools/{name}/invoke", {
  params: { path: { name: "delete_task" } },
  body: { args: { task_id: "one tea" } },
});
assert.equal(refused.response.status, 409);
const problem: components["schemas"]["Problem"] = present(refused.error);
assert.equal(problem.code, "pending_confirmation");
const status: number = problem.status;
assert.equal(status, 409);

// A problem document, read by a program.
const unknown = await client.GET("/v1/threads/{thread_id}", { params: { path: { thread_id: "no such" } } });
const code: string = present(unknown.error).code;
assert.deepEqual([unknown.response.status, code], [404, "unknown"]);

// The remaining rate limit.
const usage = present((await client.GET("/v1/usage")).data);
assert.ok(usage.requests.remaining < usage.requests.limit);
assert.equal(usage.budget ?? null, null);
assert.equal(unknown.response.headers.get("ratelimit-limit"), String(usage.requests.limit));

// The OpenAI API.
const completion = await client.POST("/v1/chat/completions", {
  body: { model: "adjutant", messages: [{ role: "user", content: "hello" }] },
});
// With `stream` the response would be a stream of events.
const answer = present(completion.data);
assert.ok("choices" in answer);
assert.equal(answer.choices[0]?.message.content, "Hello there.");

// The log of decisions, one JSON object per line.
const lines = await client.GET("/v1/decisions/export", { parseAs: "text" });
const decisions = String(present(lines.data)).trim().split("\n").map((line) => JSON.parse(line) as components["schemas"]["DecisionWithCalls"]);
assert.ok(decisions.length >= 5);
assert.ok(decisions.every((decision) => typeof decision.outcome === "string"));

// Invalid uses must not compile.
export async function misuse() {
  // @ts-expect-error unknown query parameter
  await client.GET("/v1/tasks", { params: { query: { colour: "red" } } });
  // @ts-expect-error unknown status
  await client.GET("/v1/tasks", { params: { query: { status: "open" } } });
  // @ts-expect-error unknown path
  await client.GET("/v1/nothing");
  // @ts-expect-error missing message
  await client.POST("/v1/chat", { body: {} });
  // @ts-expect-error a title is a string
  await client.PATCH("/v1/threads/{thread_id}", { params: { path: { thread_id: "one" } }, body: { title: 1 } });
  // @ts-expect-error unknown member
  present((await client.GET("/v1/tasks")).data).items;
}

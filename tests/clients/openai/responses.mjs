// The Responses API, with the official openai client for JavaScript.
import assert from "node:assert/strict";
import OpenAI from "openai";

const CITY = { type: "object", properties: { city: { type: "string" } }, required: ["city"], additionalProperties: false };
const WEATHER = { type: "function", name: "get_weather", description: "The weather in a city.", parameters: CITY, strict: true };

export function responses({ client, model, tasks, failsWith }) {
  const ask = (input, rest = {}) => client.responses.create({ model, input, ...rest });
  const result = (call, output) => ({ type: "function_call_output", call_id: call.call_id, output });
  const call = (response) => response.output.find((item) => item.type === "function_call");

  return {
    async "responses: a question is answered, with its tokens"() {
      const answer = await ask("hello", { metadata: { topic: "greeting" }, temperature: 0.5 });
      assert.equal(answer.output_text, "Hello, what can I do for you?");
      assert.equal(answer.status, "completed");
      assert.deepEqual(answer.metadata, { topic: "greeting" });
      assert.equal(answer.output.find((item) => item.type === "reasoning").summary[0].text, "A greeting.");
      assert.equal(answer.usage.total_tokens, 20);
      assert.equal((await client.responses.retrieve(answer.id)).output_text, answer.output_text);
      await client.responses.delete(answer.id);
      await failsWith(OpenAI.NotFoundError, { code: "unknown" }, client.responses.retrieve(answer.id));
    },

    async "responses: the client's stream helper puts it together"() {
      const stream = client.responses.stream({ model, input: "hello" });
      let text = "";
      stream.on("response.output_text.delta", (event) => (text += event.delta));
      const final = await stream.finalResponse();
      assert.equal(final.output_text, "Hello, what can I do for you?");
      assert.equal(text, final.output_text);
      assert.deepEqual(final.output.map((item) => item.type), ["reasoning", "message"]);
    },

    async "responses: tools run on the server, and a deletion waits for a yes"() {
      const added = await client.responses.stream({ model, input: "add buy milk" }).finalResponse();
      assert.equal(added.output_text, "One moment.\n\nDone.");
      assert.match(added.output[1].summary[0].text, /^⚙ add_task/);
      const question = await ask("delete milk");
      assert.match(question.output_text, /buy milk.*yes or no/);
      assert.deepEqual(await tasks(), ["buy milk"]);
      const done = await ask("yes", { previous_response_id: question.id });
      assert.equal(done.output_text, "Done.");
      assert.deepEqual(await tasks(), []);
    },

    async "responses: tools of the client, by id and with the whole input"() {
      const asked = await ask("the weather in Oslo", { tools: [WEATHER] });
      assert.equal(call(asked).arguments, '{"city":"Oslo"}');
      const done = await ask([result(call(asked), "Oslo: sunny")], { tools: [WEATHER], previous_response_id: asked.id });
      assert.equal(done.output_text, "It is sunny there.");
      const input = [{ role: "user", content: "the weather in Oslo" }];
      const stream = client.responses.stream({ model, input, tools: [WEATHER] });
      const again = await stream.finalResponse();
      input.push(...again.output, result(call(again), "Oslo: sunny"));
      assert.equal((await ask(input, { tools: [WEATHER] })).output_text, "It is sunny there.");
    },

    async "responses: an answer has the form that was asked for"() {
      const text = { format: { type: "json_schema", name: "place", strict: true, schema: CITY } };
      const answer = await client.responses.parse({ model, input: "where?", text });
      assert.deepEqual(JSON.parse(answer.output_text), { city: "Oslo" });
    },

    async "responses: errors are of the client's own types, in a stream too"() {
      await failsWith(OpenAI.NotFoundError, { code: "model_not_found", param: "model" }, ask("hello", { model: "gpt-5" }));
      await failsWith(OpenAI.BadRequestError, { param: "tools[0].type" }, ask("hello", { tools: [{ type: "web_search" }] }));
      await failsWith(OpenAI.BadRequestError, { param: "background" }, ask("hello", { background: true }));
      await failsWith(OpenAI.RateLimitError, { code: "rate_limit" }, ask("too often", { stream: true }));
      const events = async () => {
        for await (const event of await ask("break off", { stream: true })) assert.ok(event.type);
      };
      await failsWith(OpenAI.APIError, { code: "truncated" }, events());
      const helper = client.responses.stream({ model, input: "break off" }).finalResponse();
      await failsWith(OpenAI.APIError, { code: "truncated" }, helper);
      const embeddings = client.embeddings.create({ model, input: "hello" });
      const refused = await failsWith(OpenAI.NotFoundError, { code: "unknown" }, embeddings);
      assert.match(refused.message, /\/v1\/responses/);
    },
  };
}

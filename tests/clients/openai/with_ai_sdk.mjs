// Vercel's AI SDK against a running service: with the Responses API, its default, and with chat completions through its
// provider for OpenAI-compatible APIs.
import assert from "node:assert/strict";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { APICallError, generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const WEATHER = {
  get_weather: tool({
    description: "The weather in a city.",
    inputSchema: z.object({ city: z.string() }),
    execute: ({ city }) => `${city}: sunny`,
  }),
};
const PLACE = z.object({ city: z.string(), country: z.string() });

export function aiSdk({ url, token, model, tasks }) {
  const openai = createOpenAI({ baseURL: `${url}/v1`, apiKey: token });
  const compatible = createOpenAICompatible({
    name: "adjutant", baseURL: `${url}/v1`, apiKey: token, includeUsage: true, supportsStructuredOutputs: true,
  });
  const models = { responses: openai(model), "chat completions": openai.chat(model), compatible: compatible(model) };
  const checks = {};

  for (const [name, model] of Object.entries(models)) {
    const settings = { model, maxRetries: 0 };

    checks[`AI SDK, ${name}: text, whole and in pieces`] = async () => {
      const whole = await generateText({ ...settings, prompt: "hello" });
      assert.equal(whole.text, "Hello, what can I do for you?");
      assert.equal(whole.usage.totalTokens, 20);
      const stream = streamText({ ...settings, prompt: "hello" });
      let text = "";
      for await (const piece of stream.textStream) text += piece;
      assert.equal(text, whole.text);
      assert.equal((await stream.usage).totalTokens, 20);
    };

    checks[`AI SDK, ${name}: its loop over tools of the client`] = async () => {
      const loop = { ...settings, tools: WEATHER, stopWhen: stepCountIs(3), prompt: "the weather in Oslo" };
      const whole = await generateText(loop);
      assert.equal(whole.text, "It is sunny there.");
      assert.equal(whole.steps.length, 2);
      const stream = streamText(loop);
      assert.equal(await stream.text, "It is sunny there.");
      // The conversation continues with all messages, by reference or repeated in full.
      const messages = [
        { role: "user", content: "the weather in Oslo" },
        ...(await stream.response).messages,
        { role: "user", content: "hello again" },
      ];
      const more = await generateText({ ...settings, messages });
      assert.equal(more.text, "Hello, what can I do for you?");
    };

    checks[`AI SDK, ${name}: typed output`] = async () => {
      const output = Output.object({ schema: PLACE });
      const typed = await generateText({ ...settings, output, prompt: "which place? json_schema" });
      assert.deepEqual(typed.output, { city: "Oslo", country: "Norway" });
    };

    checks[`AI SDK, ${name}: a deletion waits for a yes`] = async () => {
      await generateText({ ...settings, prompt: "add buy milk" });
      const messages = [{ role: "user", content: "delete milk" }];
      const question = await generateText({ ...settings, messages });
      assert.match(question.text, /yes or no/);
      messages.push(...question.response.messages, { role: "user", content: "yes" });
      assert.equal((await generateText({ ...settings, messages })).text, "Done.");
      assert.deepEqual(await tasks(), []);
    };

    checks[`AI SDK, ${name}: errors`] = async () => {
      const error = await generateText({ ...settings, prompt: "too often" }).then(
        () => assert.fail("it did not fail"),
        (error) => error,
      );
      assert.ok(APICallError.isInstance(error), String(error));
      assert.equal(error.statusCode, 429);
      const errors = [];
      const stream = streamText({ ...settings, prompt: "break off", onError: ({ error }) => errors.push(error) });
      for await (const piece of stream.textStream) assert.ok(piece.length > 0);
      assert.equal(errors.length, 1, String(errors));
      assert.match(JSON.stringify(errors[0]) + String(errors[0]), /truncated|broke off|ended/);
    };
  }
  return checks;
}

// An MCP server over stdio whose tools misbehave on purpose: slow, hostile, or ending in the middle of a call.

import { createInterface } from "node:readline";
import { HOSTILE } from "./hostile-text.mjs";

const string = { type: "object", properties: { words: { type: "string" } }, additionalProperties: false };
const TOOLS = [
  { name: "nap", description: "Takes for ever.", inputSchema: string, annotations: { readOnlyHint: true } },
  { name: "gossip", description: "Says what it was told to say by somebody else.", inputSchema: string, annotations: { readOnlyHint: true } },
  { name: "grumble", description: "Always fails.", inputSchema: string, annotations: { readOnlyHint: true } },
  { name: "launch", description: "Begins something and is gone.", inputSchema: string, annotations: { destructiveHint: false } },
  { name: "poke", description: "Does something, it does not say of which kind.", inputSchema: string },
];

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "other", version: "1" } }),
  ping: () => ({}),
  "tools/list": () => ({ tools: TOOLS }),
  "tools/call": async ({ name, _meta }) => {
    if (name === "nap") {
      const params = { progressToken: _meta.progressToken, progress: 3, total: 10, message: "counting sheep" };
      process.stdout.write(JSON.stringify({ jsonrpc: "2.0", method: "notifications/progress", params }) + "\n");
      await new Promise(() => {});
    }
    if (name === "launch") process.exit(1);
    return { content: [{ type: "text", text: name === "grumble" ? "I will not do that." : HOSTILE }], isError: name === "grumble" };
  },
};

createInterface({ input: process.stdin }).on("line", async (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id === undefined) return;
  const answer = answers[method];
  const message = answer ? { result: await answer(params ?? {}) } : { error: { code: -32601, message: `no ${method}` } };
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, ...message }) + "\n");
});

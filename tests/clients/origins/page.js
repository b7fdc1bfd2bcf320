// The script of the test's pages: runs the official client, and stores the result in `window.outcome`.
import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const kinds = [];
const agent = (url, token) => {
  const agent = new HttpAgent({ url: `${url}/v1/runs`, headers: { Authorization: `Bearer ${token}` } });
  agent.subscribe({ onEvent: ({ event }) => void kinds.push(event.type) });
  return agent;
};

/** Adds a task, asks for its deletion, and confirms it. */
window.talk = async (url, token) => {
  const tasks = [];
  const running = agent(url, token);
  const say = async (words, options) => {
    if (words) running.messages.push({ id: crypto.randomUUID(), role: "user", content: words });
    await running.runAgent(options);
    tasks.push(running.state.tasks.map(({ description }) => description));
  };
  await say("please add green tea");
  await say("drop the green tea");
  const question = running.pendingInterrupts[0];
  await say(undefined, {
    resume: buildResumeArray(running.pendingInterrupts, { [question.id]: { status: "resolved", payload: { approved: true } } }),
  });
  return { kinds, question: question.message, tasks, answer: running.messages.at(-1).content };
};

/** Sends a request, and reports status, body and the headers that the browser lets a page read. */
window.ask = async (url, { token, ...options } = {}) => {
  const headers = { ...(token ? { Authorization: `Bearer ${token}` } : {}), ...options.headers };
  try {
    const response = await fetch(url, { ...options, headers });
    return { status: response.status, body: await response.text(), headers: Object.fromEntries(response.headers) };
  } catch (error) {
    return { refused: error.name };
  }
};

// Answers to calls that wait for the person.

import { call, path, Problem, uuid } from "../api.js";
import { isQuestion, resumed } from "../conversation.js";
import { backToDraft } from "../queue.js";
import { set, setTurn, state } from "../state.js";
import { t } from "../words.js";
import { restFocus } from "./layout.js";
import { reread } from "./messages.js";
import { afterwards, go, goOn, lastMessage, openTasks } from "./running.js";
import { troubled } from "./trouble.js";

/** A bare yes or no is the button; anything else is read by the service, which executes nothing that is unclear. */
export async function answerInWords(words) {
  const bare = words.toLowerCase().replace(/[.!]+$/, "");
  const allAsk = asks().every((call) => call.kind === "confirmation");
  const approved = isAnswer(bare, "answer.yes", ["yes", "y"]);
  if (allAsk && (approved || isAnswer(bare, "answer.no", ["no", "n"]))) {
    return resume(Object.fromEntries(asks().map((call) => [call.interrupt_id, { approved }])));
  }
  const turn = state.turns.at(-1);
  set({ run: { id: null, turnKey: turn?.key, attempt: 0, unsent: null, stopping: false } });
  try {
    await call("POST", "/v1/chat", { body: { thread_id: state.threadId, message: words } });
    await reread();
    if (asks().length > 0) {
      set({ trouble: new Problem({ code: "unclear", title: t("ask.unclear"), detail: t("ask.unclear_why") }) });
    }
  } catch (problem) {
    await reread().catch(() => {});
    troubled(problem);
  } finally {
    set({ run: null });
    afterwards();
    goOn();
  }
}

/** Returns the calls that wait for the person, and not for the result that another program brings. */
export const asks = () => state.pending.filter(isQuestion);

/** Returns true if `bare` is one of the words under `key`, in the page's language or in English. */
const isAnswer = (bare, key, english) => [...english, ...t(key).split(" ")].includes(bare);

/** Chooses for one pending call. All that wait are answered together, so the first choices are kept until the last. */
export const answer = (interruptId, payload) => answerAll([interruptId], payload);

/** Chooses the same for several pending calls at once. */
export async function answerAll(interruptIds, payload) {
  if (state.run) return;
  const choices = { ...state.choices, ...Object.fromEntries(interruptIds.map((id) => [id, payload])) };
  set({ choices });
  if (asks().every((call) => choices[call.interrupt_id])) await resume(choices);
}

/** Asks for the question that a pending call with other arguments would be. Nothing is executed. */
export function previewEdited(interruptId, args) {
  return call("POST", path("v1", "pending", interruptId, "preview"), { body: { thread_id: state.threadId, args } });
}

/** Takes a choice back, as long as others are open. */
export function reconsider(interruptId) {
  const { [interruptId]: _, ...choices } = state.choices;
  set({ choices });
}

async function resume(choices) {
  const turn = state.turns.at(-1);
  const before = { turn, pending: state.pending };
  const runId = uuid();
  const resume = asks().map(({ interrupt_id }) => ({ interruptId: interrupt_id, status: "resolved", payload: choices[interrupt_id] }));
  set({ pending: [], choices: {}, trouble: null });
  setTurn(turn.key, (turn) => resumed(turn, before.pending, choices));
  restFocus();
  const input = { threadId: state.threadId, runId, state: openTasks(), messages: lastMessage(), tools: [], context: [], forwardedProps: {}, resume };
  const problem = await go(state.turns.at(-1), input, { isAnswer: true });
  if (problem) {
    // Nothing came of the answers: the service says what still waits.
    await reread().catch(() => set({ pending: before.pending, turns: state.turns.map((other) => (other.key === turn.key ? before.turn : other)) }));
    troubled(problem);
    backToDraft();
  }
}

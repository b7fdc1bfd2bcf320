// Outcomes of turns: codes, texts and colours. Pure.

import { words } from "./format.js";
import { hasWords, t } from "./words.js";

// As `core` names them.
export const OUTCOMES = [
  "SUCCESS:RESPONSE_GIVEN", "SUCCESS:TASK_COMPLETED", "AMBIGUITY:UNCLEAR_INTENT", "PENDING:CONFIRMATION", "PENDING:RESULT",
  "REFUSAL:OUT_OF_SCOPE", "REFUSAL:RATE_LIMITED", "REFUSAL:CONFIRMATION_DENIED", "REFUSAL:CONFIRMATION_EXPIRED",
  "REFUSAL:CONTENT_FILTER", "ERROR:LLM_FAILURE", "ERROR:TOOL_FAILURE", "LIMIT:ITERATIONS", "LIMIT:MAX_TOKENS",
  "LIMIT:IDENTICAL_CALLS", "LIMIT:DEADLINE", "LIMIT:BUDGET", "LIMIT:CONTEXT", "CANCELLED:BY_USER", "INTERRUPTED:IN_DOUBT", "INTERRUPTED:NO_RESULT",
  "ERROR:POISONED",
];

/** `good`, `wait`, `bad` or `plain`: how an outcome is coloured. */
export function mood(outcome) {
  const group = (outcome ?? "").split(":")[0];
  return { SUCCESS: "good", PENDING: "wait", INTERRUPTED: "wait", ERROR: "bad", LIMIT: "bad" }[group] ?? "plain";
}

/** Returns the text of a turn's outcome; without one, that the turn goes on. */
export function outcomeName(outcome) {
  if (!outcome) return t("trace.running");
  return hasWords(`outcome.${outcome}`) ? t(`outcome.${outcome}`) : words(outcome);
}

/** Returns the name of a model; in words where a turn asked none. */
export const modelName = (name) => (name === "none/none" ? t("operation.no_model") : name);

// What the person thinks of an answer.

import { troubled } from "./actions/trouble.js";
import { call, path } from "./api.js";
import { setTurn } from "./state.js";

/** Turns whose rating is on its way. A second click, as of a double-click, is none. */
const underWay = new Set();

/**
 * Keeps what the person thinks of the answer of a turn, `{ rating, comment }`; `null` takes it back. It is shown at once, and as it was
 * before if the service refuses it. Returns whether it is kept.
 */
export async function rate({ key, id, feedback: before }, feedback) {
  if (underWay.has(id)) return false;
  underWay.add(id);
  const show = (feedback) => setTurn(key, (turn) => ({ ...turn, feedback }));
  const place = path("v1", "turns", id, "feedback");
  show(feedback);
  try {
    await (feedback ? call("PUT", place, { body: feedback }) : call("DELETE", place));
    return true;
  } catch (problem) {
    show(before);
    troubled(problem);
    return false;
  } finally {
    underWay.delete(id);
  }
}

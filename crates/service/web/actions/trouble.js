// Problems of requests that are no part of a turn.

import { set } from "../state.js";

/** Shows a problem of a request that is not part of a turn. */
export function troubled(problem) {
  if (problem.name === "AbortError") return;
  if (problem.status === 401 && problem.isOutdated) return;
  if (problem.status === 401) set({ fatal: problem });
  else set({ trouble: problem });
}

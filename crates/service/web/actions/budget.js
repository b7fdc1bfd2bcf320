// The rest of the day's budget.

import { call } from "../api.js";
import { set } from "../state.js";

/** Reads what is left of the day's budget, if there is one. */
export async function loadBudget() {
  try {
    const { budget } = await call("GET", "/v1/usage");
    set({ budget });
  } catch {
    // The figures of before stay on the page.
  }
}

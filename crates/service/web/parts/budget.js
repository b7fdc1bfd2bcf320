// What is left of the day's budget, when it is little.

import { nextDay, share, timeOfDay } from "../format.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { html } from "./base.js";
import { Icon } from "./icons.js";

/** Below this part of a bound it is said what is left. */
const LITTLE = 0.2;

/** The part of the day's budget that is left, of whatever there is least of; 1 if nothing is bounded. */
export function budgetLeft(bounds) {
  return bounds.reduce((least, { limit, used }) => Math.min(least, limit > 0 ? Math.max(0, 1 - used / limit) : 0), 1);
}

export function Budget() {
  if (state.budget === null) return null;
  const left = budgetLeft(state.budget.bounds);
  if (left >= LITTLE) return null;
  const values = { share: share(left), when: timeOfDay(nextDay()) };
  return html`<p class="budget" role="status"><${Icon} name="warn" />${t(left === 0 ? "budget.none" : "budget.left", values)}</p>`;
}

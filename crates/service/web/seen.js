// Conversations with something that the person has not seen yet, as far as this browser knows.

import { remember, setting } from "./settings.js";
import { state } from "./state.js";

/** Conversations whose last look is kept, the latest ones. */
const KEPT_MAX = 300;

const rootOf = (thread) => thread.root_id ?? thread.thread_id;
const timeOf = (thread) => Date.parse(thread.last_activity ?? thread.updated_at);

/** Seen conversations, by user, because several may share a browser: `{ since, at }`. What is older than `since` counts as seen;
 * `at`: the time of what was seen last, by the root of the conversation. */
const all = () => setting("seen", {});
const mine = () => all()[state.me.user];

/** Returns true if something happened in a conversation since the person saw it. */
export function isUnread(thread) {
  const seen = mine();
  return seen !== undefined && !thread.running && !thread.isBegun && timeOf(thread) > (seen.at[rootOf(thread)] ?? seen.since);
}

/** Notes that the person sees the conversation `open`; `null`: none. With the first list, all of it counts as seen. */
export function noteSeen(list, open) {
  const seen = mine() ?? { since: Math.max(0, ...list.map(timeOf)), at: {} };
  const isNew = mine() === undefined || (open !== null && timeOf(open) > (seen.at[rootOf(open)] ?? 0));
  if (!isNew) return;
  const at = open === null ? seen.at : { ...seen.at, [rootOf(open)]: timeOf(open) };
  const latest = Object.entries(at).sort(([, one], [, other]) => other - one).slice(0, KEPT_MAX);
  remember("seen", { ...all(), [state.me.user]: { since: seen.since, at: Object.fromEntries(latest) } });
}

// What to begin with: out of what the agent can do, by its tools. Pure.

import { serverOf } from "./calls.js";
import { t } from "./words.js";

const STARTERS_MAX = 5;

/** The servers that tools are of, with those: `[{ name, tools }]`. */
export function serversOf(tools) {
  const servers = new Map();
  for (const tool of tools) {
    const name = tool.server ?? serverOf(tool.name);
    if (name) servers.set(name, [...(servers.get(name) ?? []), tool]);
  }
  return [...servers].map(([name, tools]) => ({ name, tools }));
}

/** Returns suggestions for a first message: `{ text, isBegun }`. One that `isBegun` is finished by the person before it is sent. */
export function starters({ tools }) {
  const has = (name) => tools.some((tool) => tool.name === name);
  const all = [
    has("add_task") && { text: t("start.add_task") },
    has("list_tasks") && { text: t("start.list_tasks") },
    has("search_notes") && { text: t("start.search_notes"), isBegun: true },
    has("remember") && { text: t("start.remember"), isBegun: true },
    has("write_daily_note") && { text: t("start.daily_note"), isBegun: true },
    ...serversOf(tools).slice(0, 2).map(({ name }) => ({ text: t("start.server", { server: name }) })),
  ].filter(Boolean);
  // An agent that has none of these can at least say what it is there for.
  return [...all, { text: t("start.what") }].slice(0, STARTERS_MAX);
}

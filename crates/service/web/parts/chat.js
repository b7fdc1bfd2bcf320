// The conversation in the middle.

import { focusComposer, loadOlder, send, togglePanel } from "../actions.js";
import { set, state } from "../state.js";
import { t } from "../words.js";
import { classes, html, useEffect, useLayoutEffect, useRef, useState } from "./base.js";
import { IconButton } from "./button.js";
import { Composer } from "./composer.js";
import { AskAll } from "./confirmation.js";
import { Icon, Logo } from "./icons.js";
import { ProblemCard } from "./problem.js";
import { Turn } from "./turn.js";

const NEAR = 80;
/** So far from the top, what was said before is loaded. */
const NEAR_TOP = 300;
const NONE = {};

export function Chat() {
  const { turns, alternatives, older, pending, choices, run, me, title, trouble, loading, online } = state;
  const scroll = useRef(null);
  const follows = useRef(true);
  const [isBehind, setBehind] = useState(false);
  const last = turns.at(-1);
  // Stays at the end while the end is in sight, and nowhere else.
  useLayoutEffect(() => {
    if (follows.current) scroll.current.scrollTop = scroll.current.scrollHeight;
  });
  // What is put in front of what is read does not move it.
  const first = useRef({ key: null, top: 0 });
  const firstKey = turns[0]?.key ?? null;
  useLayoutEffect(() => {
    const topOf = (key) => document.getElementById(`turn-${key}`)?.offsetTop;
    const { key, top } = first.current;
    const moved = key === null ? undefined : topOf(key);
    if (moved !== undefined && !follows.current) scroll.current.scrollTop += moved - top;
    first.current = { key: firstKey, top: topOf(firstKey) ?? 0 };
  }, [firstKey]);
  // Also when the room changes: a keyboard comes up, a card opens.
  useEffect(() => {
    const watcher = new ResizeObserver(() => {
      if (follows.current) scroll.current.scrollTop = scroll.current.scrollHeight;
    });
    watcher.observe(scroll.current);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    follows.current = true;
    setBehind(false);
  }, [state.threadId, turns.length - older.count]);
  const scrolled = () => {
    const { scrollTop, scrollHeight, clientHeight } = scroll.current;
    follows.current = scrollHeight - scrollTop - clientHeight < NEAR;
    setBehind(!follows.current);
    if (scrollTop < NEAR_TOP && !follows.current) loadOlder();
  };
  const toEnd = () => {
    follows.current = true;
    scroll.current.scrollTop = scroll.current.scrollHeight;
    focusComposer();
  };
  return html`<main class="chat">
    <header class="chat-head">
      <${IconButton} icon="menu" name=${t("side.name")} class="icon-button only-narrow" aria-expanded=${state.drawer === "side"} onClick=${() => set({ drawer: "side" })} />
      <h1 dir="auto">${title ?? t(state.threadId ? "chat.conversation" : "chat.new")}</h1>
      <span class="model" title=${t("chat.model")}>${me.model}</span>
      <${IconButton} icon="panel" name=${t("chat.panel")} aria-expanded=${state.drawer === "panel" || state.panelOpen} onClick=${togglePanel} />
    </header>
    ${me.demo ? html`<p class="banner" role="note"><strong>${t("chat.demo")}</strong> ${t("chat.demo_why")}</p>` : null}
    ${online ? null : html`<p class="banner is-warning" role="status">${t("chat.offline")}</p>`}
    <div class="scroll" ref=${scroll} onScroll=${scrolled} tabindex="0" role="region" aria-label=${t("chat.messages")}>
      ${loading
        ? html`<p class="empty-note" role="status"><span class="spinner" aria-hidden="true" /> ${t("chat.loading")}</p>`
        : turns.length === 0 && older.cursor === null
          ? html`<${Empty} />`
          : html`${older.cursor === null ? null : html`<button type="button" class="text-button older" aria-busy=${older.loading} onClick=${loadOlder}>${t(older.loading ? "page.loading" : "chat.older")}</button>`}
            <ol class=${classes("turns", run !== null && "is-busy")}>
              ${turns.map((turn) => html`<${Turn} key=${turn.key} turn=${turn} isLast=${turn === last} isBusy=${turn === last && run !== null} alternatives=${alternatives.get(turn.id)}
                pending=${turn === last ? pending : NOTHING} choices=${turn === last ? choices : NONE}
                attempt=${run?.turnKey === turn.key ? run.attempt : 0} stopping=${run?.turnKey === turn.key && run.stopping} />`)}
            </ol>
            <${AskAll} />`}
    </div>
    <div class="below">
      ${isBehind ? html`<button type="button" class="to-end" onClick=${toEnd}><${Icon} name="down" />${t("chat.latest")}</button>` : null}
      ${trouble ? html`<${ProblemCard} problem=${trouble} onClose=${() => set({ trouble: null })} />` : null}
      <${Composer} />
    </div>
  </main>`;
}

const NOTHING = [];

/** Nothing was said yet: three things to begin with, which fit what the agent can do. */
function Empty() {
  const has = (tool) => state.me.tools.some(({ name }) => name === tool);
  const examples = has("add_task")
    ? [t("start.add_task"), t("start.list_tasks"), t("start.delete_task")]
    : [t("start.plain_1"), t("start.plain_2"), t("start.plain_3")];
  return html`<div class="empty">
    <${Logo} />
    <h2>${state.me.user && state.me.user !== "local" ? t("chat.hello_name", { name: state.me.user }) : t("chat.hello")}</h2>
    <p>${t("chat.promise")}</p>
    <ul class="examples">
      ${examples.map((text) => html`<li><button type="button" onClick=${() => send(text)}>${text}</button></li>`)}
    </ul>
  </div>`;
}

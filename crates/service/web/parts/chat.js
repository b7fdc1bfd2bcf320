// The conversation in the middle.

import { focusComposer, toggleSide } from "../actions/layout.js";
import { loadOlder } from "../actions/messages.js";
import { showTab, togglePanel } from "../actions/panel.js";
import { edit, send } from "../actions/sending.js";
import { toolTitle } from "../calls.js";
import { serversOf, starters } from "../starters.js";
import { set, state } from "../state.js";
import { t } from "../words.js";
import { classes, html, useEffect, useLayoutEffect, useRef, useState } from "./base.js";
import { Budget } from "./budget.js";
import { IconButton } from "./button.js";
import { Composer } from "./composer.js";
import { AskAll } from "./confirmation.js";
import { Icon, Logo } from "./icons.js";
import { ProblemCard } from "./problem.js";
import { Queued } from "./queued.js";
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
    if (follows.current && turns.length > 0) scroll.current.scrollTop = scroll.current.scrollHeight;
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
  // Also when the height changes: an on-screen keyboard appears, a card opens.
  useEffect(() => {
    const watcher = new ResizeObserver(() => {
      if (follows.current && state.turns.length > 0) scroll.current.scrollTop = scroll.current.scrollHeight;
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
      ${state.sideOpen ? null : html`<${IconButton} icon="side" name=${t("side.unfold")} class="icon-button only-wide" aria-expanded=${false} onClick=${toggleSide} />`}
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
                known=${turn.memory.length ? state.memory : null} pending=${turn === last ? pending : NOTHING} choices=${turn === last ? choices : NONE}
                attempt=${run?.turnKey === turn.key ? run.attempt : 0} unsent=${run?.turnKey === turn.key && run.unsent !== null} stopping=${run?.turnKey === turn.key && run.stopping} />`)}
            </ol>
            <${AskAll} />`}
    </div>
    <div class="below">
      ${isBehind ? html`<button type="button" class="to-end" onClick=${toEnd}><${Icon} name="down" />${t("chat.latest")}</button>` : null}
      <${Budget} />
      ${trouble ? html`<${ProblemCard} problem=${trouble} onClose=${() => set({ trouble: null })} />` : null}
      <${Queued} />
      <${Composer} />
    </div>
  </main>`;
}

const NOTHING = [];

/** Nothing was said yet: what to begin with, and what the agent can use. */
function Empty() {
  const { me } = state;
  const begin = ({ text, isBegun }) => (isBegun ? edit(text) : send(text));
  return html`<div class="empty">
    <${Logo} />
    <h2>${me.user && me.user !== "local" ? t("chat.hello_name", { name: me.user }) : t("chat.hello")}</h2>
    <p>${t("chat.promise")}</p>
    <ul class="examples">
      ${starters(me).map((starter) => html`<li><button type="button" onClick=${() => begin(starter)}>${starter.text}${starter.isBegun ? "…" : ""}</button></li>`)}
    </ul>
    <${Abilities} />
  </div>`;
}

/** Shows what the agent can use, by name: places that the page shows, and servers with their tools. */
function Abilities() {
  const { me } = state;
  const servers = serversOf(me.tools);
  const places = [me.tools.some(({ name }) => name === "add_task") && "tasks", me.memory && "memory"].filter(Boolean);
  if (servers.length === 0 && places.length === 0) return null;
  return html`<section class="abilities" aria-label=${t("start.uses")}>
    ${places.map((place) => html`<button type="button" class="text-button" onClick=${() => showTab(place)}><${Icon} name=${place} />${t(`panel.${place}`)}</button>`)}
    ${servers.map(({ name, tools }) => html`<details class="ability">
      <summary><${Icon} name="plug" />${name} <span class="muted">${t("start.tools", { count: tools.length })}</span></summary>
      <ul>${tools.map((tool) => html`<li title=${tool.description}>${toolTitle(tool.name, tools)}</li>`)}</ul>
    </details>`)}
  </section>`;
}

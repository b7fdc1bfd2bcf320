// The conversations on the left.

import { toggleSide } from "../actions/layout.js";
import { deleteThread, newThread, openFound, openThread } from "../actions/opening.js";
import { signOut } from "../actions/session.js";
import { isOpenEntry, loadThreads, renameThread, searchThreads } from "../actions/threads.js";
import { exportAddress } from "../api.js";
import { moment, period } from "../format.js";
import { isPinned, pin, pins } from "../pins.js";
import { isUnread } from "../seen.js";
import { set, state } from "../state.js";
import { beginning, withoutMarks } from "../text.js";
import { hasWords, t } from "../words.js";
import { classes, html, memo, useEffect, useRef, useState } from "./base.js";
import { IconButton } from "./button.js";
import { Icon, Logo } from "./icons.js";

export function Side() {
  const { threads, me } = state;
  const timer = useRef(null);
  const search = (event) => {
    const words = event.target.value;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => searchThreads(words), 200);
  };
  const isSearch = threads.query.trim() !== "";
  // Hits come first, and entries that are none are left out.
  const waits = isSearch ? [] : state.waits;
  const pinned = isSearch ? [] : pins();
  const founds = new Map(threads.said.map((found) => [found.root_id, found]));
  const said = threads.said.filter((found) => threads.list.every((thread) => thread.root_id !== found.root_id));
  const groups = new Map(pinned.length ? [[t("side.pinned"), pinned]] : []);
  for (const thread of threads.list) {
    if (!isSearch && isPinned(thread)) continue;
    const name = period(thread.updated_at);
    groups.set(name, [...(groups.get(name) ?? []), thread]);
  }
  const rows = [...waits, ...[...groups.values()].flat(), ...said];
  const stop = rows.find((row) => isOpenRow(row)) ?? rows[0];
  return html`<nav class="side" id="side" aria-label=${t("side.name")}>
    <header class="side-head">
      <${Logo} /><span class="brand" dir="auto">${me.service}</span>
      <${IconButton} icon="side" name=${t("side.fold")} class="icon-button only-wide" aria-expanded=${true} onClick=${toggleSide} />
      <${IconButton} icon="cross" name=${t("common.close")} class="icon-button only-narrow" onClick=${() => set({ drawer: null })} />
    </header>
    <button type="button" class="new" onClick=${newThread}><${Icon} name="plus" />${t("side.new")}</button>
    <label class="search"><${Icon} name="search" /><span class="only-heard">${t("side.search_what")}</span>
      <input type="search" placeholder=${t("side.search")} title=${t("side.search_what")} autocomplete="off" onInput=${search} /></label>
    <div class="threads" onKeyDown=${moveFocus}>
      ${waits.length
        ? html`<section>
            <h2>${t("side.waits")}</h2>
            <ul>${waits.map((call) => html`<${Wait} key=${call.interrupt_id} call=${call} isOpen=${call.thread_id === state.threadId} isStop=${call === stop} />`)}</ul>
          </section>`
        : null}
      ${[...groups].map(([name, list]) => html`<section key=${name}>
        <h2>${name}</h2>
        <ul>${list.map((thread) => html`<${Thread} key=${thread.root_id ?? thread.thread_id} thread=${thread} found=${founds.get(thread.root_id)}
          isOpen=${isOpenEntry(thread)} isStop=${thread === stop} isPinned=${isPinned(thread)} mark=${markOf(thread)} />`)}</ul>
      </section>`)}
      ${said.length
        ? html`<section>
            <h2>${t("side.said")}</h2>
            <ul>${said.map((found) => html`<${Said} key=${found.root_id} found=${found} isOpen=${isOpenEntry(found)} isStop=${found === stop} />`)}</ul>
          </section>`
        : null}
      ${threads.saidAll ? null : html`<p class="muted pad" role="status">${t("side.said_not_all")}</p>`}
      ${threads.loaded && threads.list.length === 0 && said.length === 0
        ? html`<p class="muted pad" role="status">${t(threads.problem ? "side.not_loaded" : threads.query ? "side.nothing_found" : "side.none")}</p>`
        : null}
      ${threads.problem && threads.list.length > 0 ? html`<p class="muted pad" role="status">${t("side.not_current")}</p>` : null}
      ${threads.problem ? html`<button type="button" class="button" onClick=${() => loadThreads()}>${t("common.again")}</button>` : null}
      ${threads.cursor ? html`<${More} key=${threads.cursor} />` : null}
    </div>
    <footer class="side-foot">
      <span class="who" title=${hasWords(`side.by.${me.auth}`) ? t(`side.by.${me.auth}`) : t("side.signed_in", { how: me.auth })}>${me.user}</span>
      <${IconButton} icon="settings" name=${t("settings.title")} onClick=${() => set({ settings: true })} />
      <${IconButton} icon="help" name=${t("side.keys")} onClick=${() => set({ help: true })} />
      ${me.tokens_here ? html`<${IconButton} icon="key" name=${t("access.title")} onClick=${() => set({ access: true })} />` : null}
      ${["token", "jwt", "oidc"].includes(me.auth) ? html`<${IconButton} icon="out" name=${t("side.sign_out")} onClick=${() => signOut()} />` : null}
    </footer>
  </nav>`;
}

/** Returns true if a row stands for what is open: a question, a conversation or what a search found of one. */
const isOpenRow = (row) => (row.interrupt_id ? row.thread_id === state.threadId : isOpenEntry(row));

/** Returns the mark of a conversation for the person: a question, an answer that is coming, or something new; of these the first. `null`: nothing. */
function markOf(thread) {
  const isOpen = isOpenEntry(thread);
  if (thread.pending) return "waiting";
  if (isOpen ? state.run : thread.running) return "running";
  return isUnread(thread) && !isOpen ? "unread" : null;
}

/** Goes from one conversation to another with the arrow keys, and to the menu of one: all of them are one stop of the Tab key. */
function moveFocus(event) {
  const row = event.target.closest(".thread");
  const link = event.target.closest(".thread > a");
  if (link && event.key === "ArrowRight") row.querySelector(":scope > .icon-button")?.focus();
  else if (!link && event.target.closest(".thread > .icon-button") && event.key === "ArrowLeft") row.querySelector(":scope > a")?.focus();
  else if (link && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
    const links = [...event.currentTarget.querySelectorAll(".thread > a")];
    links[links.indexOf(link) + (event.key === "ArrowUp" ? -1 : 1)]?.focus();
  } else return;
  event.preventDefault();
}

/** Returns the properties of a link that opens in place. */
const opensBy = (open) => (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  open();
};

/** Loads more of the list when its end comes into sight, or by a click. */
function More() {
  const button = useRef(null);
  const more = () => loadThreads({ more: true });
  useEffect(() => {
    const watcher = new IntersectionObserver((entries) => entries.some(({ isIntersecting }) => isIntersecting) && more(), { root: button.current.closest(".threads"), rootMargin: "400px" });
    watcher.observe(button.current);
    return () => watcher.disconnect();
  }, []);
  return html`<button ref=${button} type="button" class="text-button pad" aria-busy=${state.threads.loadingMore === true} onClick=${more}>${t("common.more")}</button>`;
}

function Dot({ mark }) {
  return html`<span class=${classes("dot", `is-${mark}`)} role="img" aria-label=${t(`side.mark.${mark}`)} title=${t(`side.mark.${mark}`)} />`;
}

/** A call of another program that waits for an answer. */
function Wait({ call, isOpen, isStop }) {
  return html`<li class=${classes("thread", isOpen && "is-open")}>
    <a href=${`#/t/${call.thread_id}`} tabindex=${isStop ? 0 : -1} aria-current=${isOpen ? "page" : undefined} title=${`${call.preview} – ${call.tool}`} dir="auto" onClick=${opensBy(() => openThread(call.thread_id))}>${call.preview}</a>
    <${Dot} mark="waiting" />
  </li>`;
}

/** A conversation that matches a search, with the matching passage. */
function Said({ found, isOpen, isStop }) {
  return html`<li class=${classes("thread", "is-said", isOpen && "is-open")}>
    <a href=${`#/t/${found.thread_id}`} tabindex=${isStop ? 0 : -1} aria-current=${isOpen ? "page" : undefined} title=${moment(found.at)} dir="auto" onClick=${opensBy(() => openFound(found, state.threads.query))}>
      ${found.title}<span class="thread-said" dir="auto">${withoutMarks(found.passage)}</span>
    </a>
  </li>`;
}

const Thread = memo(function Thread({ thread, found, isOpen, isStop, isPinned, mark }) {
  const [mode, setMode] = useState(null); // null | "menu" | "rename" | "delete"
  const row = useRef(null);
  const title = thread.title || t("side.untitled");
  useEffect(() => {
    if (mode) row.current?.querySelector("[data-first]")?.focus();
  }, [mode]);
  const leave = () => {
    setMode(null);
    requestAnimationFrame(() => row.current?.querySelector(".icon-button")?.focus());
  };
  const key = (event) => {
    if (event.key === "Escape" && mode) {
      event.stopPropagation();
      leave();
    }
  };
  // Leaving the menu with the keyboard or a click elsewhere closes it.
  const blur = (event) => {
    if (mode === "menu" && !row.current.contains(event.relatedTarget)) setMode(null);
  };
  const rename = (event) => {
    event.preventDefault();
    const name = new FormData(event.target).get("title").trim();
    if (name && name !== thread.title) renameThread(thread, name);
    leave();
  };
  const open = () => (found ? openFound(found, state.threads.query) : openThread(thread.thread_id));
  const count = thread.versions ?? 1;
  return html`<li ref=${row} class=${classes("thread", found && "is-said", isOpen && "is-open")} onKeyDown=${key} onFocusOut=${blur}>
    ${mode === "rename"
      ? html`<form class="thread-edit" onSubmit=${rename}>
          <input data-first name="title" aria-label=${t("side.title")} maxlength="200" dir="auto" value=${thread.title} onBlur=${(event) => event.target.form?.requestSubmit()} />
        </form>`
      : html`<a href=${`#/t/${thread.thread_id}`} tabindex=${isStop ? 0 : -1} aria-current=${isOpen ? "page" : undefined} title=${`${title} – ${moment(thread.updated_at)}`} dir="auto" onClick=${opensBy(open)}>
            ${title}${found ? html`<span class="thread-said" dir="auto">${withoutMarks(found.passage)}</span>` : null}
          </a>
          ${count > 1 ? html`<span class="versions" title=${t("side.versions", { count })}><span aria-hidden="true">${count}</span><span class="only-heard">${t("side.versions", { count })}</span></span>` : null}
          ${mark ? html`<${Dot} mark=${mark} />` : null}
          <${IconButton} icon="more" name=${t("side.menu", { title })} tabindex=${isStop ? 0 : -1} aria-expanded=${mode === "menu"} onClick=${() => setMode(mode ? null : "menu")} />`}
    ${mode === "menu"
      ? html`<div class="menu">
          <button data-first type="button" onClick=${() => { leave(); pin(thread, !isPinned); }}><${Icon} name="pin" />${t(isPinned ? "side.unpin" : "side.pin")}</button>
          <button type="button" onClick=${() => setMode("rename")}><${Icon} name="edit" />${t("side.rename")}</button>
          ${["markdown", "json"].map((format) => html`<a key=${format} href=${exportAddress(thread.thread_id, format)} download=${fileName(title, format)} onClick=${() => setTimeout(leave)}>
            <${Icon} name="download" />${t(`side.save.${format}`)}</a>`)}
          <button type="button" onClick=${() => setMode("delete")}><${Icon} name="trash" />${t("side.delete")}</button>
        </div>`
      : null}
    ${mode === "delete"
      ? html`<div class="ask" role="group" aria-label=${t("side.delete_this", { title })}>
          <p>${t("side.delete_question", { count })}</p>
          <div class="row">
            <button data-first type="button" class="button is-plain" onClick=${leave}>${t("common.keep")}</button>
            <button type="button" class="button is-danger" onClick=${() => { leave(); deleteThread(thread); }}>${t("common.delete")}</button>
          </div>
        </div>`
      : null}
  </li>`;
});

/** Returns the name of a conversation's file: its title, without what file names cannot have, cut to 80 characters. */
function fileName(title, format) {
  // What joins letters and emoji stays.
  const plain = title.replace(/(?![\u200c\u200d])[\\/:*?"<>|\p{C}]/gu, " ").replace(/\s+/g, " ").trim();
  const name = beginning(plain, 80).trim() || "conversation";
  return `${name}.${format === "json" ? "json" : "md"}`;
}

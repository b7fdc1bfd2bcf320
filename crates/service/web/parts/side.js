// The conversations on the left.

import { deleteThread, loadThreads, newThread, openThread, renameThread, searchThreads, signOut } from "../actions.js";
import { exportAddress } from "../api.js";
import { moment, period } from "../format.js";
import { isPinned, pin, pins } from "../pins.js";
import { set, state } from "../state.js";
import { beginning } from "../text.js";
import { hasWords, t } from "../words.js";
import { classes, html, useEffect, useRef, useState } from "./base.js";
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
  const pinned = threads.query ? [] : pins();
  const passages = new Map(threads.said.map((found) => [found.thread_id, found.passage]));
  const said = threads.said.filter((found) => threads.list.every((thread) => thread.thread_id !== found.thread_id));
  const groups = new Map(pinned.length ? [[t("side.pinned"), pinned]] : []);
  for (const thread of threads.list) {
    if (!threads.query && isPinned(thread.thread_id)) continue;
    const name = period(thread.updated_at);
    groups.set(name, [...(groups.get(name) ?? []), thread]);
  }
  return html`<nav class="side" id="side" aria-label=${t("side.name")}>
    <header class="side-head">
      <${Logo} /><span class="brand">Adjutant</span>
      <${IconButton} icon="cross" name=${t("common.close")} class="icon-button only-narrow" onClick=${() => set({ drawer: null })} />
    </header>
    <button type="button" class="new" onClick=${newThread}><${Icon} name="plus" />${t("side.new")}</button>
    <label class="search"><${Icon} name="search" /><span class="only-heard">${t("side.search_what")}</span>
      <input type="search" placeholder=${t("side.search")} title=${t("side.search_what")} autocomplete="off" onInput=${search} /></label>
    <div class="threads">
      ${state.waits.length
        ? html`<section>
            <h2>${t("side.waits")}</h2>
            <ul>${state.waits.map((call) => html`<${Wait} key=${call.interrupt_id} call=${call} isOpen=${call.thread_id === state.threadId} />`)}</ul>
          </section>`
        : null}
      ${[...groups].map(([name, list]) => html`<section key=${name}>
        <h2>${name}</h2>
        <ul>${list.map((thread) => html`<${Thread} key=${thread.thread_id} thread=${thread} passage=${passages.get(thread.thread_id)} isOpen=${thread.thread_id === state.threadId} />`)}</ul>
      </section>`)}
      ${said.length
        ? html`<section>
            <h2>${t("side.said")}</h2>
            <ul>${said.map((found) => html`<${Said} key=${found.thread_id} found=${found} isOpen=${found.thread_id === state.threadId} />`)}</ul>
          </section>`
        : null}
      ${threads.saidAll ? null : html`<p class="muted pad" role="status">${t("side.said_not_all")}</p>`}
      ${threads.loaded && threads.list.length === 0 && said.length === 0
        ? html`<p class="muted pad" role="status">${t(threads.problem ? "side.not_loaded" : threads.query ? "side.nothing_found" : "side.none")}</p>`
        : null}
      ${threads.problem ? html`<button type="button" class="button" onClick=${() => loadThreads()}>${t("common.again")}</button>` : null}
      ${threads.cursor ? html`<button type="button" class="text-button pad" onClick=${() => loadThreads({ more: true })}>${t("common.more")}</button>` : null}
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

/** A call of another program that waits for an answer. */
function Wait({ call, isOpen }) {
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openThread(call.thread_id);
  };
  return html`<li class=${classes("thread", isOpen && "is-open")}>
    <a href=${`#/t/${call.thread_id}`} aria-current=${isOpen ? "page" : undefined} title=${`${call.preview} – ${call.tool}`} dir="auto" onClick=${open}>${call.preview}</a>
    <span class="dot" role="img" aria-label=${t("side.waits_here")} title=${t("side.waits_title")} />
  </li>`;
}

/** A conversation that matches a search, with the matching passage. */
function Said({ found, isOpen }) {
  const open = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    openThread(found.thread_id);
  };
  return html`<li class=${classes("thread", "is-said", isOpen && "is-open")}>
    <a href=${`#/t/${found.thread_id}`} aria-current=${isOpen ? "page" : undefined} title=${moment(found.at)} dir="auto" onClick=${open}>
      ${found.title}<span class="thread-said" dir="auto">${found.passage}</span>
    </a>
  </li>`;
}

function Thread({ thread, passage, isOpen }) {
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
    if (name && name !== thread.title) renameThread(thread.thread_id, name);
    leave();
  };
  return html`<li ref=${row} class=${classes("thread", passage && "is-said", isOpen && "is-open")} onKeyDown=${key} onFocusOut=${blur}>
    ${mode === "rename"
      ? html`<form class="thread-edit" onSubmit=${rename}>
          <input data-first name="title" aria-label=${t("side.title")} maxlength="200" dir="auto" value=${thread.title} onBlur=${(event) => event.target.form?.requestSubmit()} />
        </form>`
      : html`<a href=${`#/t/${thread.thread_id}`} aria-current=${isOpen ? "page" : undefined} title=${`${title} – ${moment(thread.updated_at)}`} dir="auto"
            onClick=${(event) => { if (!event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); openThread(thread.thread_id); } }}>
            ${title}${passage ? html`<span class="thread-said" dir="auto">${passage}</span>` : null}
          </a>
          ${thread.pending ? html`<span class="dot" role="img" aria-label=${t("side.waits_here")} title=${t("side.waits_title")} />` : null}
          <${IconButton} icon="more" name=${t("side.menu", { title })} aria-expanded=${mode === "menu"} onClick=${() => setMode(mode ? null : "menu")} />`}
    ${mode === "menu"
      ? html`<div class="menu">
          <button data-first type="button" onClick=${() => { leave(); pin(thread, !isPinned(thread.thread_id)); }}><${Icon} name="pin" />${t(isPinned(thread.thread_id) ? "side.unpin" : "side.pin")}</button>
          <button type="button" onClick=${() => setMode("rename")}><${Icon} name="edit" />${t("side.rename")}</button>
          ${["markdown", "json"].map((format) => html`<a key=${format} href=${exportAddress(thread.thread_id, format)} download=${fileName(title, format)} onClick=${() => setTimeout(leave)}>
            <${Icon} name="download" />${t(`side.save.${format}`)}</a>`)}
          <button type="button" onClick=${() => setMode("delete")}><${Icon} name="trash" />${t("side.delete")}</button>
        </div>`
      : null}
    ${mode === "delete"
      ? html`<div class="ask" role="group" aria-label=${t("side.delete_this", { title })}>
          <p>${t("side.delete_question")}</p>
          <div class="row">
            <button data-first type="button" class="button is-plain" onClick=${leave}>${t("common.keep")}</button>
            <button type="button" class="button is-danger" onClick=${() => { leave(); deleteThread(thread.thread_id); }}>${t("common.delete")}</button>
          </div>
        </div>`
      : null}
  </li>`;
}

/** Returns the name of a conversation's file: its title, without what file names cannot have, cut to 80 characters. */
function fileName(title, format) {
  // What joins letters and emoji stays.
  const plain = title.replace(/(?![\u200c\u200d])[\\/:*?"<>|\p{C}]/gu, " ").replace(/\s+/g, " ").trim();
  const name = beginning(plain, 80).trim() || "conversation";
  return `${name}.${format === "json" ? "json" : "md"}`;
}

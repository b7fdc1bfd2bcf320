// The conversations on the left.

import { deleteThread, loadThreads, newThread, openThread, renameThread, searchThreads, signOut } from "../actions.js";
import { moment, period } from "../format.js";
import { set, state } from "../state.js";
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
  const groups = new Map();
  for (const thread of threads.list) {
    const name = period(thread.updated_at);
    groups.set(name, [...(groups.get(name) ?? []), thread]);
  }
  return html`<nav class="side" id="side" aria-label="Conversations">
    <header class="side-head">
      <${Logo} /><span class="brand">Adjutant</span>
      <${IconButton} icon="cross" name="Close" class="icon-button only-narrow" onClick=${() => set({ drawer: null })} />
    </header>
    <button type="button" class="new" onClick=${newThread}><${Icon} name="plus" />New conversation</button>
    <label class="search"><${Icon} name="search" /><span class="only-heard">Search conversations</span>
      <input type="search" placeholder="Search" autocomplete="off" onInput=${search} /></label>
    <div class="threads">
      ${state.waits.length
        ? html`<section>
            <h2>Waits for you</h2>
            <ul>${state.waits.map((call) => html`<${Wait} key=${call.interrupt_id} call=${call} isOpen=${call.thread_id === state.threadId} />`)}</ul>
          </section>`
        : null}
      ${[...groups].map(([name, list]) => html`<section key=${name}>
        <h2>${name}</h2>
        <ul>${list.map((thread) => html`<${Thread} key=${thread.thread_id} thread=${thread} isOpen=${thread.thread_id === state.threadId} />`)}</ul>
      </section>`)}
      ${threads.loaded && threads.list.length === 0
        ? html`<p class="muted pad">${threads.problem ? "The list cannot be loaded." : threads.query ? "Nothing found." : "No conversations yet."}</p>`
        : null}
      ${threads.problem ? html`<button type="button" class="button" onClick=${() => loadThreads()}>Try again</button>` : null}
      ${threads.cursor ? html`<button type="button" class="text-button pad" onClick=${() => loadThreads({ more: true })}>Show more</button>` : null}
    </div>
    <footer class="side-foot">
      <span class="who" title=${`Signed in by ${me.auth}`}>${me.user}</span>
      <${IconButton} icon="help" name="Keyboard shortcuts" onClick=${() => set({ help: true })} />
      ${me.auth === "token" ? html`<${IconButton} icon="out" name="Sign out" onClick=${signOut} />` : null}
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
    <span class="dot" role="img" aria-label="waits for your answer" title="Waits for your answer" />
  </li>`;
}

function Thread({ thread, isOpen }) {
  const [mode, setMode] = useState(null); // null | "menu" | "rename" | "delete"
  const row = useRef(null);
  const title = thread.title || "Untitled";
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
  return html`<li ref=${row} class=${classes("thread", isOpen && "is-open")} onKeyDown=${key} onFocusOut=${blur}>
    ${mode === "rename"
      ? html`<form class="thread-edit" onSubmit=${rename}>
          <input data-first name="title" aria-label="Title" maxlength="200" dir="auto" value=${thread.title} onBlur=${(event) => event.target.form?.requestSubmit()} />
        </form>`
      : html`<a href=${`#/t/${thread.thread_id}`} aria-current=${isOpen ? "page" : undefined} title=${`${title} – ${moment(thread.updated_at)}`} dir="auto"
            onClick=${(event) => { if (!event.ctrlKey && !event.metaKey && !event.shiftKey) { event.preventDefault(); openThread(thread.thread_id); } }}>
            ${title}
          </a>
          ${thread.pending ? html`<span class="dot" role="img" aria-label="waits for your answer" title="Waits for your answer" />` : null}
          <${IconButton} icon="more" name=${`Rename or delete ${title}`} aria-expanded=${mode === "menu"} onClick=${() => setMode(mode ? null : "menu")} />`}
    ${mode === "menu"
      ? html`<div class="menu">
          <button data-first type="button" onClick=${() => setMode("rename")}><${Icon} name="edit" />Rename</button>
          <button type="button" onClick=${() => setMode("delete")}><${Icon} name="trash" />Delete…</button>
        </div>`
      : null}
    ${mode === "delete"
      ? html`<div class="ask" role="group" aria-label=${`Delete ${title}?`}>
          <p>Delete this conversation and its log? Tasks stay.</p>
          <div class="row">
            <button data-first type="button" class="button is-plain" onClick=${leave}>Keep</button>
            <button type="button" class="button is-danger" onClick=${() => { leave(); deleteThread(thread.thread_id); }}>Delete</button>
          </div>
        </div>`
      : null}
  </li>`;
}

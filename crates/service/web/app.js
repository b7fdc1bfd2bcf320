// The page: redraws itself when the state has changed, and handles the keyboard.

import { focusSearch } from "./actions/layout.js";
import { newThread, openFromAddress } from "./actions/opening.js";
import { showTab } from "./actions/panel.js";
import { stop } from "./actions/running.js";
import { begin } from "./actions/session.js";
import { stayLive } from "./live.js";
import { tabTitle, watchRun } from "./notify.js";
import { Access } from "./parts/access.js";
import { Chat } from "./parts/chat.js";
import { classes, html, isComposing } from "./parts/base.js";
import { Help } from "./parts/help.js";
import { Panel } from "./parts/panel.js";
import { Settings } from "./parts/settings.js";
import { Side } from "./parts/side.js";
import { SignIn, Unavailable } from "./parts/signin.js";
import { setting } from "./settings.js";
import { set, state, subscribe } from "./state.js";
import { showTheme } from "./theme.js";
import { render } from "./vendor/htm-preact-standalone.module.js";
import { t } from "./words.js";

const root = document.getElementById("app");

function App() {
  if (state.fatal?.status === 401) return html`<${SignIn} />`;
  if (state.fatal) return html`<${Unavailable} problem=${state.fatal} />`;
  if (!state.me) return html`<p class="boot" role="status">${t("page.loading")}</p>`;
  const { drawer, panelOpen, sideOpen } = state;
  return html`<a class="skip" href="#composer" onClick=${(event) => { event.preventDefault(); document.getElementById("composer").focus(); }}>${t("page.skip")}</a>
    <div class=${classes("app", panelOpen && "has-panel", !sideOpen && "no-side", drawer && `shows-${drawer}`)}>
      <${Side} /><${Chat} /><${Panel} />
      ${drawer ? html`<div class="shade" onClick=${() => set({ drawer: null })} />` : null}
    </div>
    ${state.help ? html`<${Help} />` : null}
    ${state.settings ? html`<${Settings} />` : null}
    ${state.access ? html`<${Access} />` : null}`;
}

// In another language, with formulas or without, everything is drawn anew, also what would stay as it is.
function draw() {
  document.getElementById("said").setAttribute("aria-label", t("page.said"));
  render(html`<${App} key=${`${state.language} ${setting("math", true)}`} />`, root);
}

/** What lies under a drawer or beside the screen takes no focus. */
function fence() {
  const isPhone = matchMedia("(max-width: 760px)").matches;
  const isNarrow = matchMedia("(max-width: 1000px)").matches;
  const { drawer, panelOpen } = state;
  const inert = {
    side: (isPhone && drawer !== "side") || drawer === "panel",
    chat: drawer !== null,
    panel: (isNarrow ? drawer !== "panel" : !panelOpen) || drawer === "side",
  };
  for (const [name, isInert] of Object.entries(inert)) {
    const pane = root.querySelector(`.${name}`);
    if (pane) pane.inert = isInert;
  }
}

let drawn = null;
subscribe(() => {
  const before = drawn;
  draw();
  fence();
  // The focus goes with a drawer, and comes back.
  if (before !== state.drawer) {
    drawn = state.drawer;
    const pane = state.drawer ? root.querySelector(`.${state.drawer}`) : null;
    if (pane) pane.querySelector("button, input, a")?.focus();
    else if (before) root.querySelector(before === "side" ? ".chat-head button" : ".chat-head button:last-child")?.focus();
  }
  watchRun();
  document.title = tabTitle();
});

const isWriting = (target) => target.closest?.("input, textarea, select, [contenteditable]");

addEventListener("keydown", (event) => {
  if (!state.me || state.help || state.settings || state.access || isComposing(event)) return;
  if (event.key === "Escape") {
    if (state.drawer) set({ drawer: null });
    else if (state.run) stop();
    return;
  }
  if (event.code === "KeyK" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
    event.preventDefault();
    focusSearch();
    return;
  }
  // By the key's place: with Alt, some systems make other characters of it.
  const far = event.altKey && !event.ctrlKey && !event.metaKey ? { KeyN: newThread, KeyT: () => showTab("tasks"), KeyR: () => showTab("trace") }[event.code] : null;
  const near =
    !event.altKey && !event.ctrlKey && !event.metaKey && setting("single-keys", true) && !isWriting(event.target)
      ? { "/": () => document.getElementById("composer")?.focus(), "?": () => set({ help: true }) }[event.key]
      : null;
  const action = far ?? near;
  if (action) {
    event.preventDefault();
    action();
  }
});
addEventListener("popstate", openFromAddress);
addEventListener("online", () => set({ online: true }));
addEventListener("offline", () => set({ online: false }));
addEventListener("resize", fence);

showTheme();
draw();
begin();
stayLive();

// Tells a person who looks elsewhere that an answer or a question is there: in the title of the tab, and, if they asked for it, by a
// notification of the browser.

import { openThread } from "./actions/opening.js";
import { isQuestion } from "./conversation.js";
import { remember, setting } from "./settings.js";
import { set, state } from "./state.js";
import { t } from "./words.js";

/** Milliseconds of a run after which the person may have turned to something else. */
const LONG_MS = 10_000;

/** Returns the state of notifications: "on", "off", "denied" (the person has refused them in the browser) or "missing" (it has none). */
export function notifying() {
  if (window.Notification === undefined || !window.isSecureContext) return "missing";
  if (Notification.permission === "denied") return "denied";
  return Notification.permission === "granted" && setting("notify", false) ? "on" : "off";
}

/** Turns notifications on or off; asks the browser if it was not asked yet. Only a click leads here. */
export async function chooseNotifying(isOn) {
  remember("notify", isOn && (await Notification.requestPermission()) === "granted");
}

/** The run that goes on: its conversation, and when it began. */
let run = null;

/** Looks at what became of the run. Called at every change. */
export function watchRun() {
  if (state.run) {
    if (run?.threadId !== state.threadId) run = { threadId: state.threadId, at: Date.now() };
    return;
  }
  if (run === null) return;
  const { threadId, at } = run;
  run = null;
  // A user who has changed to another conversation is not notified about this one.
  if (threadId !== state.threadId || isSeen()) return;
  const asks = state.pending.some(isQuestion);
  set({ news: asks ? "question" : "answer" });
  if (asks || document.hidden || Date.now() - at >= LONG_MS) tell(threadId, asks);
}

const isSeen = () => !document.hidden && document.hasFocus();

function tell(threadId, asks) {
  if (notifying() !== "on") return;
  try {
    const body = asks ? state.pending.find(isQuestion).preview : (state.title ?? "");
    const note = new Notification(t(asks ? "notify.question" : "notify.answer"), { body, tag: threadId, icon: new URL("icons/192.png", import.meta.url).href });
    note.onclick = () => {
      window.focus();
      if (state.threadId !== threadId) openThread(threadId);
      note.close();
    };
  } catch {
    // Some mobile browsers define the API without supporting it: the tab's title has to suffice.
  }
}

/** The title of the tab. */
export function tabTitle() {
  const title = state.title ? t("page.title", { title: state.title }) : "Adjutant";
  return state.news ? t(`notify.tab.${state.news}`, { title }) : title;
}

for (const [target, name] of [[document, "visibilitychange"], [window, "focus"]]) {
  target.addEventListener(name, () => {
    if (state.news && isSeen()) set({ news: null });
  });
}

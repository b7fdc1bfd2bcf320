// The beginning of the page, and of what the person does with it as a whole: signing in and out, and the language.

import { call, noteSignIn, send as request } from "../api.js";
import { forgetDrafts } from "../drafts.js";
import { remember, setting } from "../settings.js";
import { set } from "../state.js";
import { languageNow, loadWords } from "../words.js";
import { loadBudget } from "./budget.js";
import { openFromAddress } from "./opening.js";
import { timeZone } from "./sending.js";
import { loadTasks } from "./tasks.js";
import { loadThreads } from "./threads.js";
import { troubled } from "./trouble.js";

export async function begin() {
  set({ fatal: null });
  try {
    set({ me: await call("GET", "/v1/me"), panelOpen: setting("panel", false), sideOpen: setting("side", true) });
  } catch (problem) {
    set({ fatal: problem });
    return;
  }
  loadThreads();
  loadTasks();
  loadBudget();
  storeTimeZone();
  await openFromAddress();
}

/** Stores the browser's time zone, so that the time of what the person writes in other programs is known too. */
async function storeTimeZone() {
  try {
    const { time_zone: stored } = await call("GET", "/v1/settings");
    if (stored !== timeZone()) await call("PATCH", "/v1/settings", { body: { time_zone: timeZone() } });
  } catch {
    // The page states the zone with each message itself.
  }
}

export async function signIn(token) {
  await request("POST", "/v1/session", { body: { token: token.trim() } });
  noteSignIn();
  await begin();
}

/** Signs this browser out, or all of the person's; and leads to where they sign out at their provider too, if there is such a place. */
export async function signOut(everywhere = false) {
  try {
    const there = await call("DELETE", "/v1/session" + (everywhere ? "?everywhere=true" : ""));
    forgetDrafts();
    location.assign(there?.provider_sign_out ?? "/");
  } catch (problem) {
    troubled(problem);
  }
}

/** Has the page in another language; `null`: in the browser's. */
export async function chooseLanguage(name) {
  remember("language", name);
  await loadWords();
  set({ language: languageNow() });
}

// The left side, the width of the page, and where the focus goes.

import { remember } from "../settings.js";
import { set, state } from "../state.js";

/** Folds the left side, or has it there again, and moves the focus to the button for the other. */
export function toggleSide() {
  set({ sideOpen: !state.sideOpen });
  remember("side", state.sideOpen);
  requestAnimationFrame(() => document.querySelector(state.sideOpen ? ".side-head .only-wide" : ".chat-head .only-wide")?.focus());
}

/** Moves the focus to the search, wherever it is. */
export function focusSearch() {
  if (matchMedia("(max-width: 760px)").matches) set({ drawer: "side" });
  else if (!state.sideOpen) toggleSide();
  // After the focus that comes with the side itself.
  requestAnimationFrame(() => requestAnimationFrame(() => document.querySelector(".search input")?.select()));
}

export const isNarrow = () => matchMedia("(max-width: 1000px)").matches;

/** Moves the focus on from an element that is gone: to the message field, or, where that would bring up a keyboard, the conversation. */
export function restFocus() {
  if (matchMedia("(pointer: fine)").matches) focusComposer();
  else requestAnimationFrame(() => document.querySelector(".scroll")?.focus());
}

export function focusComposer() {
  requestAnimationFrame(() => document.getElementById("composer")?.focus());
}

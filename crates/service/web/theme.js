// Light, dark, or as the system has it.

import { remember, setting } from "./settings.js";

export const THEMES = ["system", "light", "dark"];

/** The theme that was chosen. */
export const themeNow = () => setting("theme", "system");

/** Chooses a theme. Without a choice, the system's theme is used. */
export function chooseTheme(theme) {
  remember("theme", theme);
  showTheme();
}

/** Shows the theme that was chosen; the bars around the page have its colour. */
export function showTheme() {
  const theme = themeNow();
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  for (const meta of document.querySelectorAll('meta[name="theme-color"]')) {
    meta.dataset.own ??= meta.content;
    const chosen = document.querySelector(`meta[name="theme-color"][media*="${theme}"]`);
    meta.content = chosen ? (chosen.dataset.own ?? chosen.content) : meta.dataset.own;
  }
}

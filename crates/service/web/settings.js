// What this browser remembers: how the person likes the page, never what was said.

const PREFIX = "adjutant.";

/** Settings that could not be stored; they hold until the page is closed. */
const unstored = new Map();

/** A setting, or the default where there is none. */
export function setting(name, otherwise) {
  if (unstored.has(name)) return unstored.get(name);
  try {
    const value = localStorage.getItem(PREFIX + name);
    return value === null ? otherwise : JSON.parse(value);
  } catch {
    return otherwise;
  }
}

export function remember(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
    unstored.delete(name);
  } catch {
    // Private windows may refuse.
    unstored.set(name, value);
  }
}

/** The setting for rendering equations in answers. Default: on. An answer that is shown already keeps what it was shown with. */
export const math = {
  isOn: () => setting("math", true),
  set: (isOn) => remember("math", isOn),
};

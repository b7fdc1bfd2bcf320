// What this browser remembers: how the person likes the page, never what was said.

const PREFIX = "adjutant.";

/** A setting, or the default where there is none or nothing may be stored. */
export function setting(name, otherwise) {
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
  } catch {
    // Private windows may refuse; then it holds until the page is closed.
  }
}

/** Whether equations in answers are set as such. An answer that is shown already keeps what it was shown with. */
export const math = {
  isOn: () => setting("math", true),
  set: (isOn) => remember("math", isOn),
};

// Buttons that are one stop of the Tab key: the arrow keys go from one to the next.

import { html, useLayoutEffect, useRef } from "./base.js";

/** Has one of the buttons, the one that had the focus last, be the stop. */
function rove(bar, stop) {
  const buttons = [...bar.querySelectorAll("button, a[href]")];
  const wanted = stop ?? buttons.find((button) => button.tabIndex === 0 && !button.disabled) ?? buttons.find((button) => !button.disabled);
  for (const button of buttons) button.tabIndex = button === wanted ? 0 : -1;
  return buttons.filter((button) => !button.disabled);
}

export function Toolbar({ name, children, ...rest }) {
  const bar = useRef(null);
  useLayoutEffect(() => {
    rove(bar.current);
  });
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    const buttons = rove(bar.current);
    const at = buttons.indexOf(event.target);
    if (!step || at < 0) return;
    event.preventDefault();
    const next = buttons[(at + step + buttons.length) % buttons.length];
    rove(bar.current, next);
    next.focus();
  };
  const focus = (event) => event.target.closest("button, a[href]") && rove(bar.current, event.target);
  return html`<div ref=${bar} role="toolbar" aria-label=${name} onKeyDown=${key} onFocusIn=${focus} ...${rest}>${children}</div>`;
}

// Icons: strokes on a 20 × 20 grid, in the colour of the text around them. Hidden from screen readers: their buttons have names.

import { html } from "./base.js";

const PATHS = {
  plus: ["M10 4v12M4 10h12"],
  search: ["M9 15A6 6 0 1 0 9 3a6 6 0 0 0 0 12ZM13.5 13.5 17 17"],
  more: ["M4.5 10h.01M10 10h.01M15.5 10h.01"],
  send: ["M10 16V4M5 9l5-5 5 5"],
  stop: ["M6.5 6.5h7v7h-7z"],
  copy: ["M7.5 7.5h8v8h-8z", "M12.5 7.5v-3h-8v8h3"],
  check: ["m4.5 10.5 3.5 3.5 7.5-8"],
  cross: ["m5.5 5.5 9 9m0-9-9 9"],
  retry: ["M15.5 10a5.5 5.5 0 1 1-1.8-4.1", "M16 3.5v3.2h-3.2"],
  edit: ["m4 16 .7-3.2L13 4.5l2.5 2.5-8.3 8.3L4 16Z"],
  trash: ["M4.5 6h11M8 6V4h4v2M6 6l.7 10h6.6L14 6"],
  menu: ["M3.5 6h13M3.5 10h13M3.5 14h13"],
  panel: ["M3.5 4.5h13v11h-13zM12 4.5v11"],
  side: ["M3.5 4.5h13v11h-13zM8 4.5v11"],
  back: ["m11.5 5-5 5 5 5"],
  forth: ["m8.5 5 5 5-5 5"],
  down: ["M10 4v12M5 11l5 5 5-5"],
  chevron: ["m7.5 5 5 5-5 5"],
  help: ["M10 17a7 7 0 1 0 0-14 7 7 0 0 0 0 14Z", "M8 8.2A2 2 0 1 1 10.8 10c-.6.3-.8.6-.8 1.3M10 13.8h.01"],
  warn: ["M10 3.5 17 16H3L10 3.5Z", "M10 8.5v3.2M10 13.8h.01"],
  trace: ["M3.5 5.5h6M6.5 10h7M11 14.5h5.5"],
  tasks: ["M9 5.5h7.5M9 10h7.5M9 14.5h7.5", "m3 5.5 1 1 2-2M3 10l1 1 2-2M3 14.5l1 1 2-2"],
  memory: ["M5 3.5h10v13l-5-3-5 3z"],
  star: ["m10 3.5 2 4.2 4.5.6-3.3 3.2.8 4.6-4-2.2-4 2.2.8-4.6L3.5 8.3l4.5-.6Z"],
  good: ["M3.5 9h3v7.5h-3z", "M6.5 9.5 9.5 3.5a1.8 1.8 0 0 1 1.8 2.2L10.8 8h4a1.7 1.7 0 0 1 1.7 2l-.9 5a1.8 1.8 0 0 1-1.8 1.5H6.5"],
  bad: ["M3.5 11h3V3.5h-3z", "M6.5 10.5 9.5 16.5a1.8 1.8 0 0 0 1.8-2.2L10.8 12h4a1.7 1.7 0 0 0 1.7-2l-.9-5a1.8 1.8 0 0 0-1.8-1.5H6.5"],
  dot: ["M10 10h.01"],
  plug: ["M7 3.5v4M13 3.5v4M5 7.5h10v2a5 5 0 0 1-10 0zM10 14.5v3"],
  settings: ["M10 12.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5Z", "M10 3v2M10 15v2M3 10h2M15 10h2M5 5l1.5 1.5M13.5 13.5 15 15M15 5l-1.5 1.5M6.5 13.5 5 15"],
  pin: ["M7 3.5h6l-.7 5 2.2 2.5h-9l2.2-2.5L7 3.5ZM10 11v5.5"],
  download: ["M10 3.5V12M6.5 8.5 10 12l3.5-3.5M4 16h12"],
  key: ["M7.5 15.5a3.5 3.5 0 1 0 0-7 3.5 3.5 0 0 0 0 7Z", "m10 9.5 6-6M13.5 6l2 2"],
  out: ["M8 4H4.5v12H8", "M8 10h8.5M13 6.5l3.5 3.5-3.5 3.5"],
};

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
    ${PATHS[name].map((path) => html`<path d=${path} />`)}
  </svg>`;
}

export function Logo() {
  return html`<svg class="logo" viewBox="0 0 32 32" aria-hidden="true" focusable="false">
    <rect width="32" height="32" rx="9" />
    <path class="logo-a" d="M9.5 22.5 16 8.5l6.5 14" />
    <path class="logo-b" d="m12.6 18.2 2.6 2.4 4.6-5" />
  </svg>`;
}

// Something waits: a call that needs a yes, one of which nobody knows whether it was done, or one whose result another program brings.

import { answer, edit, reconsider } from "../actions.js";
import { moment, pretty, remaining, words } from "../format.js";
import { state } from "../state.js";
import { classes, html, useEffect, useNow, useRef, useState } from "./base.js";
import { Icon } from "./icons.js";

const HOUR = 3_600_000;

/** What the buttons say: for what destroys, its own words. */
function labels(tool) {
  if (/(^|_)(delete|remove|destroy|drop)(_|$)/.test(tool)) return { yes: "Delete", no: "Keep", danger: true };
  return { yes: "Do it", no: "Don’t", danger: Boolean(state.me?.tools.find(({ name }) => name === tool)?.destructive) };
}

export function Confirmation({ call, choice }) {
  const left = useTimeLeft(call.expires_at);
  const isLate = left <= 0;
  const first = useRef(null);
  const isFirst = state.pending[0]?.interrupt_id === call.interrupt_id;
  // The harmless answer has the focus; not where the person is writing something.
  useEffect(() => {
    const writing = document.activeElement?.id === "composer" && document.activeElement.value !== "";
    if (isFirst && !isLate && !writing) first.current?.focus();
  }, [call.interrupt_id]);
  const title = `confirm-${call.interrupt_id}`;
  if (isLate) return html`<${Expired} call=${call} />`;
  if (call.kind === "awaits_result") {
    return html`<div role="group" class="confirm" aria-labelledby=${title} data-interrupt=${call.interrupt_id}>
      <h3 id=${title} dir="auto">${words(call.tool)}</h3>
      <p class="quiet">Waits for the program that asked, which brings the result.</p>
    </div>`;
  }
  const Body = call.kind === "doubt" ? Doubt : Approval;
  return html`<div role="group" class=${classes("confirm", choice && "is-chosen")} aria-labelledby=${title} data-interrupt=${call.interrupt_id}>
    <${Body} call=${call} choice=${choice} title=${title} first=${first} />
    <p class="expiry">
      <span title=${moment(call.expires_at)}>Expires in <span class="digits">${remaining(left)}</span>. Unanswered, nothing is done.</span>
    </p>
  </div>`;
}

/** Milliseconds until then; told each second in the last hours, else each minute. */
function useTimeLeft(then) {
  const left = new Date(then).getTime() - Date.now();
  const now = useNow(left > 2 * HOUR ? 60_000 : 1000);
  return new Date(then).getTime() - Math.max(now, Date.now());
}

function Approval({ call, choice, title, first }) {
  const [isEditing, setEditing] = useState(false);
  const { yes, no, danger } = labels(call.tool);
  const say = (payload) => answer(call.interrupt_id, payload);
  if (isEditing) return html`<${EditArgs} call=${call} yes=${yes} danger=${danger} title=${title} onDone=${() => setEditing(false)} />`;
  return html`<h3 id=${title} dir="auto">${question(call.preview)}</h3>
    <details class="quiet">
      <summary>${words(call.tool)}</summary>
      <pre class="json" tabindex="0" role="group" aria-label="Arguments"><code>${pretty(call.args)}</code></pre>
    </details>
    ${choice
      ? html`<div class="row"><span class="chosen"><${Icon} name="check" />${choice.approved ? yes : no} – waits for your other answers</span>
          <button type="button" class="button" onClick=${() => reconsider(call.interrupt_id)}>Change</button></div>`
      : html`<div class="row">
          <button type="button" class="button is-plain" ref=${first} onClick=${() => say({ approved: false })}>${no}</button>
          <button type="button" class=${classes("button", danger ? "is-danger" : "is-main")} onClick=${() => say({ approved: true })}>${yes}</button>
          <button type="button" class="button is-bare" onClick=${() => setEditing(true)}><${Icon} name="edit" />Edit</button>
        </div>`}`;
}

function question(preview) {
  const words = preview.trim();
  return /[?!.]$/.test(words) ? words : `${words}?`;
}

/** Other arguments to say yes to. They are checked again by the service. */
function EditArgs({ call, yes, danger, title, onDone }) {
  const properties = state.me?.tools.find(({ name }) => name === call.tool)?.parameters?.properties ?? {};
  const names = [...new Set([...Object.keys(call.args), ...Object.keys(properties)])];
  const kind = (name) => properties[name]?.type ?? typeof call.args[name];
  const isFlat = names.every((name) => ["string", "number", "integer", "boolean"].includes(kind(name)));
  const [args, setArgs] = useState(call.args);
  const [text, setText] = useState(() => pretty(call.args));
  const [wrong, setWrong] = useState(null);
  const start = useRef(null);
  useEffect(() => start.current?.querySelector("input, textarea, select")?.focus(), []);
  const save = (event) => {
    event.preventDefault();
    let edited = args;
    if (!isFlat) {
      try {
        edited = JSON.parse(text);
      } catch (error) {
        setWrong(`Not JSON: ${error.message}`);
        return;
      }
    }
    answer(call.interrupt_id, { approved: true, editedArgs: edited });
  };
  const field = (name) => {
    const id = `edit-${call.interrupt_id}-${name}`;
    const { enum: options, description } = properties[name] ?? {};
    const change = (value) => setArgs(value === undefined ? without(args, name) : { ...args, [name]: value });
    const value = args[name];
    const input = options
      ? html`<select id=${id} value=${value ?? ""} onChange=${(event) => change(event.target.value || undefined)}>${options.map((option) => html`<option value=${option}>${option}</option>`)}</select>`
      : kind(name) === "boolean"
        ? html`<input id=${id} type="checkbox" checked=${value === true} onChange=${(event) => change(event.target.checked)} />`
        : kind(name) === "string"
          ? html`<input id=${id} dir="auto" value=${value ?? ""} onInput=${(event) => change(event.target.value)} />`
          : html`<input id=${id} type="number" step=${kind(name) === "integer" ? 1 : "any"} value=${value ?? ""} onInput=${(event) => change(event.target.value === "" ? undefined : Number(event.target.value))} />`;
    return html`<div class="field"><label for=${id}>${words(name)}</label>${input}${description ? html`<small class="muted">${description}</small>` : null}</div>`;
  };
  return html`<form ref=${start} onSubmit=${save} aria-labelledby=${title}>
    <h3 id=${title}>Change what ${words(call.tool)} is called with</h3>
    ${isFlat
      ? names.map(field)
      : html`<div class="field"><label for=${`edit-${call.interrupt_id}`}>Arguments (JSON)</label>
          <textarea id=${`edit-${call.interrupt_id}`} rows="6" spellcheck="false" value=${text} onInput=${(event) => setText(event.target.value)} /></div>`}
    ${wrong ? html`<p class="wrong" role="alert">${wrong}</p>` : null}
    <div class="row">
      <button type="button" class="button is-plain" onClick=${onDone}>Back</button>
      <button type="submit" class=${classes("button", danger ? "is-danger" : "is-main")}>${yes} with these</button>
    </div>
  </form>`;
}

function without(object, name) {
  const { [name]: _, ...rest } = object;
  return rest;
}

const VERDICTS = { done: "It was done", retry: "Not done: try again", leave: "Not done: leave it" };

function Doubt({ call, choice, title, first }) {
  const say = (verdict) => answer(call.interrupt_id, { verdict });
  return html`<h3 id=${title} dir="auto">Was this done? ${call.preview}</h3>
    <p>${call.since ? `It was begun on ${moment(call.since)}, and then the connection or the service broke off.` : "It was begun, and then something broke off."}
      ${" "}Nobody knows whether it took effect. Please look, and say.</p>
    <details class="quiet">
      <summary>${words(call.tool)}</summary>
      <pre class="json" tabindex="0" role="group" aria-label="Arguments"><code>${pretty(call.args)}</code></pre>
    </details>
    ${choice
      ? html`<div class="row"><span class="chosen"><${Icon} name="check" />${VERDICTS[choice.verdict]} – waits for your other answers</span>
          <button type="button" class="button" onClick=${() => reconsider(call.interrupt_id)}>Change</button></div>`
      : html`<div class="row">
          <button type="button" class="button is-plain" ref=${first} onClick=${() => say("leave")}>${VERDICTS.leave}</button>
          <button type="button" class="button" onClick=${() => say("done")}>${VERDICTS.done}</button>
          <button type="button" class="button" onClick=${() => say("retry")}>${VERDICTS.retry}</button>
        </div>`}`;
}

/** Too late: the service refuses it, so it is not offered. */
function Expired({ call }) {
  const asked = [...state.turns].reverse().find((turn) => turn.text)?.text;
  return html`<div role="group" class="confirm is-expired" aria-label="Expired question">
    <h3 dir="auto">${question(call.preview)}</h3>
    <p>The time for your answer ran out on ${moment(call.expires_at)}. Nothing was done.</p>
    ${asked ? html`<div class="row"><button type="button" class="button" onClick=${() => edit(asked)}><${Icon} name="retry" />Ask again</button></div>` : null}
  </div>`;
}

// Cards of pending calls: a confirmation, a call in doubt, or a call whose result another program has to send.

import { answer, answerAll, previewEdited, reconsider } from "../actions/answers.js";
import { edit } from "../actions/sending.js";
import { callWords } from "../calls.js";
import { moment, pretty, remaining, words } from "../format.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { classes, html, useEffect, useRef, useState } from "./base.js";
import { Icon } from "./icons.js";

/** Questions whose times end so close to each other were asked together. */
const TOGETHER_MS = 60_000;

/** Labels of the buttons; destructive calls have labels of their own. */
function labels(tool) {
  if (/(^|_)(delete|remove|destroy|drop)(_|$)/.test(tool)) return { yes: t("common.delete"), no: t("common.keep"), danger: true, deletes: true };
  return { yes: t("ask.yes"), no: t("ask.no"), danger: Boolean(state.me?.tools.find(({ name }) => name === tool)?.destructive) };
}

export function Confirmation({ call, choice }) {
  const until = endOf(call);
  const left = until - useClock();
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
      <h3 id=${title} dir="auto">${callWords({ name: call.tool, args: call.args, status: "waiting" }, state.me.tools).text}</h3>
      <p class="quiet">${t("ask.awaits_result")}</p>
    </div>`;
  }
  const Body = call.kind === "doubt" ? Doubt : Approval;
  return html`<div role="group" class=${classes("confirm", choice && "is-chosen")} aria-labelledby=${title} data-interrupt=${call.interrupt_id}>
    <${Body} call=${call} choice=${choice} title=${title} first=${first} />
    <p class="expiry">
      <span class="digits" title=${moment(call.expires_at)}>${t("ask.expires", { when: remaining(left) })}</span>
    </p>
  </div>`;
}

/** Returns the end of the time for an answer, in milliseconds since 1970: for questions that were asked together, the same. */
function endOf(call) {
  const own = new Date(call.expires_at).getTime();
  const ends = state.pending.map(({ expires_at }) => new Date(expires_at).getTime());
  return Math.min(own, ...ends.filter((end) => own - end < TOGETHER_MS));
}

const clocks = new Set();
let ticking;

/** One clock for all cards, so that their times agree. */
function useClock() {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    clocks.add(setNow);
    ticking ??= setInterval(() => {
      const now = Date.now();
      for (const tell of clocks) tell(now);
    }, 1000);
    return () => {
      clocks.delete(setNow);
      if (clocks.size > 0) return;
      clearInterval(ticking);
      ticking = undefined;
    };
  }, []);
  return now;
}

function Approval({ call, choice, title, first }) {
  const [isEditing, setEditing] = useState(false);
  // What the call is with other arguments, once the person has said yes to that.
  const [edited, setEdited] = useState(null);
  const { yes, no, danger } = labels(call.tool);
  const say = (payload) => answer(call.interrupt_id, payload);
  const leave = () => setEditing(false);
  const sayEdited = (args, shown) => {
    leave();
    setEdited(shown);
    say({ approved: true, editedArgs: args, shown: shown.interrupt_id });
  };
  if (isEditing) return html`<${EditArgs} call=${call} yes=${yes} danger=${danger} title=${title} onBack=${leave} onYes=${sayEdited} />`;
  const asked = choice?.editedArgs && edited ? edited : call;
  const chosen = !choice?.approved ? no : choice.always ? t("ask.always") : choice.for_conversation ? t("ask.for_conversation") : yes;
  return html`<h3 id=${title} dir="auto">${question(asked.preview)}</h3>
    <details class="quiet">
      <summary>${words(call.tool)}</summary>
      <pre class="json" tabindex="0" role="group" aria-label=${t("ask.arguments")}><code>${pretty(asked.args)}</code></pre>
    </details>
    ${choice
      ? html`<div class="row"><span class="chosen"><${Icon} name="check" />${t("ask.chosen", { choice: chosen })}</span>
          <button type="button" class="button" onClick=${() => reconsider(call.interrupt_id)}>${t("common.change")}</button></div>`
      : html`<div class="row">
          <button type="button" class="button is-plain" ref=${first} onClick=${() => say({ approved: false })}>${no}</button>
          <button type="button" class=${classes("button", danger ? "is-danger" : "is-main")} onClick=${() => say({ approved: true })}>${yes}</button>
          ${call.for_conversation ? html`<button type="button" class="button" onClick=${() => say({ approved: true, for_conversation: true })}>${t("ask.for_conversation")}</button>` : null}
          ${call.always ? html`<button type="button" class="button" title=${t("ask.always_why")} onClick=${() => say({ approved: true, always: true })}>${t("ask.always")}</button>` : null}
          <button type="button" class="button is-bare" onClick=${() => setEditing(true)}><${Icon} name="edit" />${t("common.edit")}</button>
        </div>`}`;
}

function question(preview) {
  const words = preview.trim();
  return /[?!.]$/.test(words) ? words : `${words}?`;
}

/** Other arguments. There is a yes to them only beside what the service says they mean, which any change takes away. */
function EditArgs({ call, yes, danger, title, onBack, onYes }) {
  const properties = state.me?.tools.find(({ name }) => name === call.tool)?.parameters?.properties ?? {};
  const names = [...new Set([...Object.keys(call.args), ...Object.keys(properties)])];
  const kind = (name) => properties[name]?.type ?? typeof call.args[name];
  const isFlat = names.every((name) => ["string", "number", "integer", "boolean"].includes(kind(name)));
  const [args, setArgs] = useState(call.args);
  const [text, setText] = useState(() => pretty(call.args));
  const [wrong, setWrong] = useState(null);
  /** The preview that is shown: `{ args, question }`. `null`: none since the last change. */
  const [shown, setShown] = useState(null);
  const start = useRef(null);
  const meaning = useRef(null);
  /** Counts the changes: an answer of the service to what stood there before is none to what stands there now. */
  const changes = useRef(0);
  useEffect(() => start.current?.querySelector("input, textarea, select")?.focus(), []);
  // It is read before there is a yes: the focus goes to it, and not to the button.
  useEffect(() => meaning.current?.focus(), [shown]);
  const changed = (set) => (value) => {
    changes.current += 1;
    setShown(null);
    setWrong(null);
    set(value);
  };
  const look = async (event) => {
    event.preventDefault();
    let edited = args;
    if (!isFlat) {
      try {
        edited = JSON.parse(text);
      } catch (error) {
        setWrong(t("ask.not_json", { why: error.message }));
        return;
      }
    }
    const now = changes.current;
    try {
      const question = await previewEdited(call.interrupt_id, edited);
      if (now === changes.current) setShown({ args: edited, question });
    } catch (problem) {
      if (now === changes.current) setWrong(problem.message);
    }
  };
  const field = (name) => {
    const id = `edit-${call.interrupt_id}-${name}`;
    const { enum: options, description } = properties[name] ?? {};
    const change = (value) => changed(setArgs)(value === undefined ? without(args, name) : { ...args, [name]: value });
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
  return html`<form ref=${start} onSubmit=${look} aria-labelledby=${title}>
    <h3 id=${title}>${t("ask.edit_title", { tool: words(call.tool) })}</h3>
    ${isFlat
      ? names.map(field)
      : html`<div class="field"><label for=${`edit-${call.interrupt_id}`}>${t("ask.arguments_json")}</label>
          <textarea id=${`edit-${call.interrupt_id}`} rows="6" spellcheck="false" value=${text} onInput=${(event) => changed(setText)(event.target.value)} /></div>`}
    ${wrong ? html`<p class="wrong" role="alert">${wrong}</p>` : null}
    ${shown ? html`<p class="meaning" ref=${meaning} tabindex="-1" dir="auto">${t("ask.means", { question: question(shown.question.preview) })}</p>` : null}
    <div class="row">
      <button type="button" class="button is-plain" onClick=${onBack}>${t("common.back")}</button>
      ${shown
        ? html`<button key="yes" type="button" class=${classes("button", danger ? "is-danger" : "is-main")} onClick=${() => onYes(shown.args, shown.question)}>${t("ask.with_these", { yes })}</button>`
        : html`<button key="look" type="submit" class="button">${t("ask.look")}</button>`}
    </div>
  </form>`;
}

function without(object, name) {
  const { [name]: _, ...rest } = object;
  return rest;
}

/** One answer for all questions that wait for a yes, each of them listed. */
export function AskAll() {
  const { pending, choices } = state;
  const now = useClock();
  const open = pending.filter((call) => call.kind === "confirmation" && !choices[call.interrupt_id] && endOf(call) > now);
  if (open.length < 2) return null;
  const all = open.map(({ tool }) => labels(tool));
  const [yes, no] = all.every(({ deletes }) => deletes) ? ["ask.all_delete", "ask.all_keep"] : ["ask.all_yes", "ask.all_no"];
  const say = (approved, more) => answerAll(open.map(({ interrupt_id }) => interrupt_id), { approved, ...more });
  return html`<section class="ask-all" aria-labelledby="ask-all">
    <h3 id="ask-all">${t("ask.all_title", { count: open.length })}</h3>
    <ol>${open.map((call) => html`<li key=${call.interrupt_id} dir="auto">${question(call.preview)}</li>`)}</ol>
    <div class="row">
      <button type="button" class="button is-plain" onClick=${() => say(false)}>${t(no, { count: open.length })}</button>
      <button type="button" class=${classes("button", all.some(({ danger }) => danger) ? "is-danger" : "is-main")} onClick=${() => say(true)}>${t(yes, { count: open.length })}</button>
      ${open.every((call) => call.for_conversation) ? html`<button type="button" class="button" onClick=${() => say(true, { for_conversation: true })}>${t("ask.all_for_conversation", { count: open.length })}</button>` : null}
    </div>
  </section>`;
}

function Doubt({ call, choice, title, first }) {
  const say = (verdict) => answer(call.interrupt_id, { verdict });
  return html`<h3 id=${title} dir="auto">${t("ask.doubt", { what: call.preview })}</h3>
    <p>${call.since ? t("ask.doubt_since", { when: moment(call.since) }) : t("ask.doubt_why")}</p>
    <details class="quiet">
      <summary>${words(call.tool)}</summary>
      <pre class="json" tabindex="0" role="group" aria-label=${t("ask.arguments")}><code>${pretty(call.args)}</code></pre>
    </details>
    ${choice
      ? html`<div class="row"><span class="chosen"><${Icon} name="check" />${t("ask.chosen", { choice: t(`ask.verdict.${choice.verdict}`) })}</span>
          <button type="button" class="button" onClick=${() => reconsider(call.interrupt_id)}>${t("common.change")}</button></div>`
      : html`<div class="row">
          <button type="button" class="button is-plain" ref=${first} onClick=${() => say("leave")}>${t("ask.verdict.leave")}</button>
          <button type="button" class="button" onClick=${() => say("done")}>${t("ask.verdict.done")}</button>
          <button type="button" class="button" onClick=${() => say("retry")}>${t("ask.verdict.retry")}</button>
        </div>`}`;
}

/** Too late: the service refuses it, so it is not offered. */
function Expired({ call }) {
  const asked = [...state.turns].reverse().find((turn) => turn.text)?.text;
  return html`<div role="group" class="confirm is-expired" aria-label=${t("ask.expired")}>
    <h3 dir="auto">${question(call.preview)}</h3>
    <p>${t("ask.expired_why", { when: moment(call.expires_at) })}</p>
    ${asked ? html`<div class="row"><button type="button" class="button" onClick=${() => edit(asked)}><${Icon} name="retry" />${t("ask.ask_again")}</button></div>` : null}
  </div>`;
}

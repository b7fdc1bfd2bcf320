// Where the person writes.
//
// The text is the field's: a text of any length costs what it costs in a bare field. It is read when it is short, and else when
// the person pauses; nothing about a long text is looked at with each key.

import { stop } from "../actions/running.js";
import { leaveEditing, submit as send } from "../actions/sending.js";
import { isQuestion } from "../conversation.js";
import { cost, count } from "../format.js";
import { measured } from "../length.js";
import { LONG, onDraft, setDraft, state, writeIn } from "../state.js";
import { t } from "../words.js";
import { classes, html, isComposing, useLayoutEffect, useRef, useState } from "./base.js";
import { Icon } from "./icons.js";

/** Milliseconds without a key after which a long text is read. */
const PAUSE_MS = 300;
/** Tokens of a message from which on its size and its price are said before it is sent. */
const BIG_TOKENS = 20_000;

/** Characters that a message may have; `null`: as many as the model can read. */
const longest = () => state.me?.message_chars_max ?? null;

/** Whether the service would refuse a message for its length. */
function isRefused(text) {
  const max = longest();
  // No text has more characters than units.
  return max !== null && !state.me.cuts_messages && text.length > max && measured(text.trim()).characters > max;
}

/** Returns the remark about a text before it is sent; `null`: none. */
function noteAbout(text) {
  const max = longest();
  if (text.length <= (max ?? Infinity) && text.length <= BIG_TOKENS) return null;
  const { characters, tokens } = measured(text.trim(), max ?? Infinity);
  if (max !== null && characters > max) return { isWrong: true, words: t(state.me.cuts_messages ? "composer.cut" : "composer.too_long", { count: characters, max }) };
  if (tokens < BIG_TOKENS) return null;
  const usd = state.me?.input_usd_per_million;
  const size = { tokens: count(tokens) };
  return { isWrong: false, words: usd > 0 ? t("composer.big_price", { ...size, price: cost((usd * tokens) / 1e6) }) : t("composer.big", size) };
}

/** Shows the remark about the composer's text. */
const shownOf = (text) => ({ isEmpty: text.trim() === "", note: noteAbout(text) });

const LETTER = /\p{L}/u;
const RIGHT_TO_LEFT = /[\p{Script=Hebrew}\p{Script=Arabic}\p{Script=Syriac}\p{Script=Thaana}\p{Script=Nko}]/u;

/** The direction of a text, by its first letter. A field with `dir="auto"` looks at all of its text for it, which takes seconds. */
function directionOf(text) {
  const letter = LETTER.exec(text.slice(0, LONG))?.[0];
  return letter !== undefined && RIGHT_TO_LEFT.test(letter) ? "rtl" : "ltr";
}

export function Composer() {
  const area = useRef(null);
  const timer = useRef(null);
  const { run, pending, turns, editing } = state;
  const [{ isEmpty, note }, show] = useState(() => shownOf(state.draft));
  const showText = (text) => {
    const direction = directionOf(text);
    if (area.current.dir !== direction) area.current.dir = direction;
    show(shownOf(text));
  };
  // Before the browser shows the field: a text that is set before it listens would never be in it.
  useLayoutEffect(() => {
    const field = area.current;
    field.value = state.draft;
    field.dir = directionOf(state.draft);
    fitHeight(field);
    const forget = () => {
      clearTimeout(timer.current);
      timer.current = null;
    };
    const read = () => {
      if (timer.current === null) return;
      forget();
      setDraft(field.value, field);
    };
    const shown = (text, source) => {
      if (source !== field) {
        if (field.value !== text) field.value = text;
        fitHeight(field);
      }
      showText(text);
    };
    const ends = [writeIn({ read, forget }), onDraft(shown)];
    return () => {
      read();
      for (const end of ends) end();
    };
  }, []);
  const input = ({ target }) => {
    fitHeight(target);
    clearTimeout(timer.current);
    timer.current = null;
    if (target.textLength <= LONG) return setDraft(target.value, target);
    timer.current = setTimeout(() => {
      timer.current = null;
      setDraft(target.value, target);
    }, PAUSE_MS);
    if (isEmpty) show({ isEmpty: false, note });
  };
  const submit = (event) => {
    event?.preventDefault();
    // What stands there now: a key may come before what was written last is drawn.
    const text = area.current.value;
    // The service would refuse it; it stays where it can be made shorter.
    if (isRefused(text)) return show(shownOf(text));
    send(text);
  };
  const key = (event) => {
    if (isComposing(event)) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey && matchMedia("(pointer: fine)").matches) submit(event);
    if (event.key === "Escape" && state.editing) {
      event.stopPropagation();
      leaveEditing();
    }
    if (event.key === "ArrowUp" && event.target.textLength === 0) {
      const said = [...turns].reverse().find((turn) => turn.text)?.text;
      if (said) {
        event.preventDefault();
        setDraft(said);
      }
    }
  };
  // The buttons have keys: one that became another under a click would do what that one does.
  return html`<form class=${classes("composer", editing && "is-editing", note && "has-note")} onSubmit=${submit}>
    ${editing
      ? html`<p class="editing" role="status"><${Icon} name="edit" /><span>${t("composer.editing")}</span>
          <button type="button" class="text-button" onClick=${leaveEditing}>${t("common.cancel")}</button></p>`
      : null}
    <label class="only-heard" for="composer">${t("composer.name")}</label>
    <textarea id="composer" ref=${area} rows="1" autocomplete="off" enterkeyhint="send"
      placeholder=${t(pending.some(isQuestion) ? "composer.answer" : "composer.write")}
      aria-describedby="composer-hint" onInput=${input} onKeyDown=${key} />
    <span class="composer-side">
      ${run && !isEmpty ? html`<button key="later" type="submit" class="round is-later" aria-label=${t("composer.queue")} title=${t("composer.queue")}><${Icon} name="send" /></button>` : null}
      ${run
        ? html`<button key="stop" type="button" class="round is-stop" aria-label=${t("composer.stop")} title=${t("composer.stop_title")} disabled=${run.stopping || !run.id} onClick=${stop}><${Icon} name="stop" /></button>`
        : html`<button key="send" type="submit" class="round" aria-label=${t("composer.send")} title=${t("composer.send_title")} disabled=${isEmpty}><${Icon} name="send" /></button>`}
    </span>
    <span id="composer-hint" role=${note ? "status" : null} class=${note ? classes("composer-note", note.isWrong && "wrong") : "only-heard"}>${note ? note.words : t(run ? "composer.hint_queue" : "composer.hint")}</span>
  </form>`;
}

/** Makes the field as high as what is written, within what CSS allows. A long text is as high as that without a look at it. */
function fitHeight(area) {
  if (area.textLength > LONG) {
    if (area.style.height !== "100vh") area.style.height = "100vh";
    return;
  }
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

// Where the person writes.

import { leaveEditing, stop, submit as send } from "../actions.js";
import { isQuestion } from "../conversation.js";
import { onDraft, setDraft, state } from "../state.js";
import { t } from "../words.js";
import { classes, html, useEffect, useLayoutEffect, useRef, useState } from "./base.js";
import { Icon } from "./icons.js";

/** Characters that a message may have; `null`: as many as the model can read. */
const longest = () => state.me?.message_chars_max ?? null;

/** Whether the service would refuse a message for its length. */
const isRefused = (text) => longest() !== null && !state.me.cuts_messages && [...text.trim()].length > longest();

export function Composer() {
  const area = useRef(null);
  const { run, pending, turns, editing } = state;
  const [draft, draw] = useState(state.draft);
  useEffect(() => onDraft(draw), []);
  useLayoutEffect(() => {
    // As high as what is written, within what CSS allows.
    area.current.style.height = "auto";
    area.current.style.height = `${area.current.scrollHeight}px`;
  }, [draft]);
  const submit = (event) => {
    event?.preventDefault();
    // The service would refuse it; it stays where it can be made shorter.
    if (isRefused(area.current.value)) return;
    // What stands there now: a key may come before what was written last is drawn.
    send(area.current.value);
  };
  const key = (event) => {
    if (event.isComposing) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey && matchMedia("(pointer: fine)").matches) submit(event);
    if (event.key === "Escape" && state.editing) {
      event.stopPropagation();
      leaveEditing();
    }
    if (event.key === "ArrowUp" && event.target.value === "") {
      const said = [...turns].reverse().find((turn) => turn.text)?.text;
      if (said) {
        event.preventDefault();
        setDraft(said);
      }
    }
  };
  const max = longest();
  const length = [...draft.trim()].length;
  const isLong = max !== null && length > max;
  const tooLong = () => t(state.me.cuts_messages ? "composer.cut" : "composer.too_long", { count: length, max });
  // The buttons have keys: one that became another under a click would do what that one does.
  return html`<form class=${classes("composer", editing && "is-editing")} onSubmit=${submit}>
    ${editing
      ? html`<p class="editing" role="status"><${Icon} name="edit" /><span>${t("composer.editing")}</span>
          <button type="button" class="text-button" onClick=${leaveEditing}>${t("common.cancel")}</button></p>`
      : null}
    <label class="only-heard" for="composer">${t("composer.name")}</label>
    <textarea id="composer" ref=${area} rows="1" dir="auto" value=${draft} autocomplete="off" enterkeyhint="send"
      placeholder=${t(pending.some(isQuestion) ? "composer.answer" : "composer.write")}
      aria-describedby="composer-hint" onInput=${(event) => setDraft(event.target.value)} onKeyDown=${key} />
    <span class="composer-side">
      <span id="composer-hint" role=${isLong ? "status" : null} class=${isLong ? "wrong" : "only-heard"}>${isLong ? tooLong() : t(run ? "composer.hint_queue" : "composer.hint")}</span>
      ${run && draft.trim() !== "" ? html`<button key="later" type="submit" class="round is-later" aria-label=${t("composer.queue")} title=${t("composer.queue")}><${Icon} name="send" /></button>` : null}
      ${run
        ? html`<button key="stop" type="button" class="round is-stop" aria-label=${t("composer.stop")} title=${t("composer.stop_title")} disabled=${run.stopping || !run.id} onClick=${stop}><${Icon} name="stop" /></button>`
        : html`<button key="send" type="submit" class="round" aria-label=${t("composer.send")} title=${t("composer.send_title")} disabled=${draft.trim() === ""}><${Icon} name="send" /></button>`}
    </span>
  </form>`;
}

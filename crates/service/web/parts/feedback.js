// Rating of an answer: two buttons below it, and a field for the reason of a bad one.

import { rate } from "../feedback.js";
import { t } from "../words.js";
import { html, isComposing, say, useEffect, useRef } from "./base.js";
import { IconButton } from "./button.js";

/** The most characters of a comment that the service takes. The field counts UTF-16 units, of which there are never fewer. */
const COMMENT_MAX = 2000;

/** The two buttons; pressed, each takes back what it said. `onAsk(isAsked)`: the reason is wanted, or not any more. */
export function Rating({ turn, isAsking, onAsk }) {
  const rating = turn.feedback?.rating;
  const choose = async (chosen) => {
    const isOn = rating !== chosen;
    onAsk(isOn && chosen === "down");
    if (await rate(turn, isOn ? { rating: chosen } : null)) say(t(isOn ? "feedback.kept" : "feedback.taken_back"));
  };
  return html`<${IconButton} icon="good" name=${t("feedback.up")} aria-pressed=${rating === "up"} onClick=${() => choose("up")} />
    <${IconButton} icon="bad" name=${t("feedback.down")} aria-pressed=${rating === "down"} onClick=${() => choose("down")} />
    ${rating === "down" ? html`<button type="button" class="text-button" aria-expanded=${isAsking} onClick=${() => onAsk(!isAsking)}>${t("feedback.what")}</button>` : null}`;
}

/** The field for the reason. Escape leaves it, and the focus goes back to the button. */
export function Reason({ turn, onLeave }) {
  const area = useRef(null);
  const id = `reason-${turn.key}`;
  useEffect(() => {
    area.current.focus();
    area.current.scrollIntoView({ block: "nearest" });
  }, []);
  const leave = () => {
    onLeave();
    document.getElementById(`turn-${turn.key}`)?.querySelector(".answer-tools [aria-expanded=true].text-button")?.focus();
  };
  const submit = async (event) => {
    event.preventDefault();
    const comment = area.current.value.trim();
    leave();
    if (await rate(turn, { rating: "down", comment: comment || undefined })) say(t("feedback.kept"));
  };
  const key = (event) => {
    if (event.key !== "Escape" || isComposing(event)) return;
    // Elsewhere it stops an answer.
    event.stopPropagation();
    leave();
  };
  return html`<form class="reason" onSubmit=${submit} onKeyDown=${key}>
    <label for=${id}>${t("feedback.what")}</label>
    <textarea id=${id} ref=${area} rows="2" dir="auto" maxlength=${COMMENT_MAX} aria-describedby=${`${id}-who`} value=${turn.feedback?.comment ?? ""} />
    <p class="muted" id=${`${id}-who`}>${t("feedback.who")}</p>
    <div class="row is-end">
      <button type="button" class="button is-plain" onClick=${leave}>${t("common.cancel")}</button>
      <button type="submit" class="button is-main">${t("composer.send")}</button>
    </div>
  </form>`;
}

// Your access: the tokens of your programs and the browsers you are signed in with.

import { loadAccess, makeToken, revoke } from "../access.js";
import { signOut } from "../actions/session.js";
import { moment } from "../format.js";
import { set } from "../state.js";
import { t } from "../words.js";
import { copy, html, say, useEffect, useRef, useState } from "./base.js";
import { ProblemCard } from "./problem.js";

const DAYS = [7, 30, 90, 365];

export function Access() {
  const dialog = useRef(null);
  const [known, setKnown] = useState(null);
  const [problem, setProblem] = useState(null);
  const [made, setMade] = useState(null);
  /** Does something, and shows what there is afterwards. Gives whether it was done. */
  const act = async (work) => {
    setProblem(null);
    try {
      await work?.();
      setKnown(await loadAccess());
      return true;
    } catch (error) {
      setProblem(error);
      return false;
    }
  };
  useEffect(() => {
    dialog.current.showModal();
    act();
  }, []);
  const list = (kind) => (known?.tokens ?? []).filter((token) => token.kind === kind);
  const take = (token) => act(async () => {
    if (token.current && token.kind === "session") return signOut();
    await revoke(token.id);
    say(t("access.revoked", { name: token.name || token.id }));
  });
  const rows = (tokens, name) => html`<ul class="access-list" aria-label=${name}>${tokens.map((token) => html`<${Row} key=${token.id} token=${token} take=${take} />`)}</ul>`;
  return html`<dialog ref=${dialog} class="dialog is-wide" aria-labelledby="access-title" onClose=${() => set({ access: false })}
      onClick=${(event) => event.target === dialog.current && dialog.current.close()}>
    <h2 id="access-title">${t("access.title")}</h2>
    ${problem ? html`<${ProblemCard} problem=${problem} onClose=${() => setProblem(null)} />` : null}
    ${known
      ? html`<h3>${t("access.browsers")}</h3>
          ${list("session").length ? rows(list("session"), t("access.browsers")) : html`<p class="muted">${t("access.no_browsers")}</p>`}
          <button type="button" class="text-button" onClick=${() => signOut(true)}>${t("access.everywhere")}</button>
          <h3>${t("access.programs")}</h3>
          <p class="muted">${t("access.programs_why")}</p>
          ${list("token").length ? rows(list("token"), t("access.programs")) : null}
          ${made ? html`<${Secret} made=${made} onClose=${() => setMade(null)} />` : html`<${Make} max=${known.days_max} make=${(name, days) => act(async () => setMade(await makeToken(name, days)))} />`}`
      : problem ? null : html`<p class="muted" role="status">${t("page.loading")}</p>`}
    <form method="dialog" class="row is-end"><button type="submit" class="button">${t("common.close")}</button></form>
  </dialog>`;
}

function Row({ token, take }) {
  const [isBusy, setBusy] = useState(false);
  const name = token.name || token.id;
  const facts = [
    token.current ? t("access.this") : null,
    token.used_at ? t("access.used", { when: moment(token.used_at) }) : t("access.never_used"),
    token.expires_at ? t("access.until", { when: moment(token.expires_at) }) : t("access.for_ever"),
    token.role === "user" ? null : token.role,
  ];
  const click = async () => {
    setBusy(true);
    await take(token);
    setBusy(false);
  };
  const isSession = token.kind === "session";
  return html`<li class="access-row">
    <span class="access-words"><span dir="auto" class="access-name" title=${name}>${name}</span><span class="muted">${facts.filter(Boolean).join(" · ")}</span></span>
    <button type="button" class="button" disabled=${isBusy} aria-label=${t(isSession ? "access.sign_out_name" : "access.revoke_name", { name })} onClick=${click}>${t(isSession ? "access.sign_out" : "access.revoke")}</button>
  </li>`;
}

function Make({ max, make }) {
  const name = useRef(null);
  const days = DAYS.filter((count) => count <= max);
  const choices = days.length ? days : [max];
  const submit = async (event) => {
    event.preventDefault();
    const fields = new FormData(event.target);
    const words = fields.get("name").trim();
    if (words && (await make(words, Number(fields.get("days"))))) name.current?.form.reset();
  };
  return html`<form class="access-make" onSubmit=${submit}>
    <div class="field"><label for="access-name">${t("access.name")}</label>
      <input id="access-name" ref=${name} name="name" dir="auto" maxlength="100" required autocomplete="off" placeholder=${t("access.name_example")} /></div>
    <div class="field"><label for="access-days">${t("access.days")}</label>
      <select id="access-days" name="days">${choices.map((count) => html`<option value=${count} selected=${count === choices.at(-1)}>${t("access.count_days", { count })}</option>`)}</select></div>
    <button type="submit" class="button is-main">${t("access.make")}</button>
  </form>`;
}

/** The secret of a token that was just made, this once. */
function Secret({ made, onClose }) {
  const [copied, setCopied] = useState(false);
  return html`<div class="access-secret" role="group" aria-labelledby="access-once">
    <p id="access-once">${t("access.once", { name: made.name })}</p>
    <input readonly value=${made.token} aria-label=${t("access.secret")} onFocus=${(event) => event.target.select()} />
    <div class="row is-end">
      <button type="button" class="button is-main" onClick=${async () => setCopied(await copy(made.token))}>${copied ? t("common.copied") : t("common.copy")}</button>
      <button type="button" class="button" onClick=${onClose}>${t("access.kept")}</button>
    </div>
  </div>`;
}

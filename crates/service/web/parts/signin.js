// Nobody is signed in: how to get in.

import { begin, signIn } from "../actions.js";
import { t } from "../words.js";
import { html, typed, useRef, useState } from "./base.js";
import { Logo } from "./icons.js";
import { ProblemCard } from "./problem.js";

export function SignIn() {
  const input = useRef(null);
  const [wrong, setWrong] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    setWrong(null);
    try {
      await signIn(input.current.value);
    } catch (problem) {
      setWrong(problem.status === 401 ? t("signin.wrong") : problem.message);
      input.current.select();
    }
  };
  return html`<main class="gate">
    <form class="gate-card" onSubmit=${submit}>
      <${Logo} />
      <h1>${t("signin.title")}</h1>
      <p>${typed(t("signin.how"))}</p>
      <div class="field"><label for="token">${t("signin.token")}</label>
        <input id="token" ref=${input} type="password" required autocomplete="current-password" spellcheck="false" aria-describedby="token-wrong" /></div>
      <p id="token-wrong" class="wrong" role="alert">${wrong}</p>
      <div class="row is-end"><button type="submit" class="button is-main">${t("signin.submit")}</button></div>
      <p class="muted">${typed(t("signin.none"))}</p>
    </form>
  </main>`;
}

/** The service does not answer, or not as it should. */
export function Unavailable({ problem }) {
  return html`<main class="gate">
    <div class="gate-card">
      <${Logo} />
      <h1>${t("signin.unavailable")}</h1>
      <${ProblemCard} problem=${problem} onRetry=${begin} />
    </div>
  </main>`;
}

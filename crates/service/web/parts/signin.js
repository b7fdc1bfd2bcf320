// Nobody is signed in: how to get in.

import { begin, signIn } from "../actions.js";
import { html, useRef, useState } from "./base.js";
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
      setWrong(problem.status === 401 ? "That token opens nothing here. Was it revoked, or is it from another start of the service?" : problem.message);
      input.current.select();
    }
  };
  return html`<main class="gate">
    <form class="gate-card" onSubmit=${submit}>
      <${Logo} />
      <h1>Sign in to Adjutant</h1>
      <p>Open the link that <code>adjutant serve</code> prints behind <code>web</code>: it signs this browser in. Or paste a token:</p>
      <div class="field"><label for="token">Token</label>
        <input id="token" ref=${input} type="password" required autocomplete="current-password" spellcheck="false" aria-describedby="token-wrong" /></div>
      <p id="token-wrong" class="wrong" role="alert">${wrong}</p>
      <div class="row is-end"><button type="submit" class="button is-main">Sign in</button></div>
      <p class="muted">No token? Whoever runs the service makes one with <code>adjutant token create --user NAME</code>.</p>
    </form>
  </main>`;
}

/** The service does not answer, or not as it should. */
export function Unavailable({ problem }) {
  return html`<main class="gate">
    <div class="gate-card">
      <${Logo} />
      <h1>Adjutant does not answer</h1>
      <${ProblemCard} problem=${problem} onRetry=${begin} />
    </div>
  </main>`;
}

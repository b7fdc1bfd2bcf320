// Nobody is signed in: how to get in.

import { waysToSignIn } from "../access.js";
import { begin, signIn } from "../actions/session.js";
import { linkTarget } from "../markdown/links.js";
import { state } from "../state.js";
import { t } from "../words.js";
import { html, typed, useEffect, useRef, useState } from "./base.js";
import { Logo } from "./icons.js";
import { ProblemCard } from "./problem.js";

/** Values of `?signin=` with which a failed sign-in returns from the provider. */
const FAILED = ["denied", "stale", "provider", "refused"];

export function SignIn() {
  const [way, setWay] = useState(null);
  const [problem, setProblem] = useState(null);
  const ask = () => waysToSignIn().then(setWay, setProblem);
  useEffect(() => {
    ask();
  }, []);
  if (problem) return html`<${Unavailable} problem=${problem} />`;
  if (!way) return html`<p class="boot" role="status">${t("page.loading")}</p>`;
  const failed = new URLSearchParams(location.search).get("signin");
  return html`<main class="gate">
    <div class="gate-card">
      <${Logo} />
      <h1>${t("signin.title", { name: way.service })}</h1>
      ${state.me && !failed ? html`<p role="status">${t("signin.ended")}</p>` : null}
      ${FAILED.includes(failed) ? html`<p class="wrong" role="alert">${t(`signin.failed.${failed}`)}</p>` : null}
      ${way.auth === "oidc"
        ? html`<p>${t("signin.how_oidc")}</p>
            <div class="row is-end"><a class="button is-main" href=${way.sign_in}>${t("signin.with", { provider: way.provider })}</a></div>
            <details class="gate-more"><summary>${t("signin.by_token")}</summary><${ByToken} way=${way} /></details>`
        : way.auth === "proxy"
          ? html`<p>${t("signin.how_proxy")}</p>
              <div class="row is-end"><button type="button" class="button is-main" onClick=${begin}>${t("common.again")}</button></div>`
          : html`<p>${typed(t(way.auth === "jwt" ? "signin.how_jwt" : "signin.how"))}</p>
              <${ByToken} way=${way} />
              ${way.contact ? null : html`<p class="muted">${typed(t(way.auth === "jwt" ? "signin.none_jwt" : "signin.none"))}</p>`}`}
      ${way.contact ? html`<p class="muted">${t("signin.ask")} <${Contact} who=${way.contact} /></p>` : null}
    </div>
  </main>`;
}

/** Whom to ask, as a link if it is an address. */
function Contact({ who }) {
  const target = linkTarget(/^[^\s@/:]+@[^\s@/:]+$/.test(who) ? `mailto:${who}` : who);
  return target === null ? html`<span dir="auto">${who}</span>` : html`<a href=${target} rel="noopener noreferrer">${who}</a>`;
}

function ByToken({ way }) {
  const input = useRef(null);
  const [wrong, setWrong] = useState(null);
  const submit = async (event) => {
    event.preventDefault();
    setWrong(null);
    try {
      await signIn(input.current.value);
    } catch (problem) {
      setWrong(problem.status === 401 ? t(way.auth === "token" ? "signin.wrong" : "signin.wrong_here") : problem.message);
      input.current.select();
    }
  };
  return html`<form onSubmit=${submit}>
    <div class="field"><label for="token">${t("signin.token")}</label>
      <input id="token" ref=${input} type="password" required autocomplete="current-password" spellcheck="false" aria-describedby="token-wrong" /></div>
    <p id="token-wrong" class="wrong" role="alert">${wrong}</p>
    <div class="row is-end"><button type="submit" class="button is-main">${t("signin.submit")}</button></div>
  </form>`;
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

// What stands beside the conversation: the tasks, what happened in each turn, what is remembered, and how the service is.

import { showTab } from "../actions/panel.js";
import { set, state } from "../state.js";
import { t } from "../words.js";
import { classes, html } from "./base.js";
import { IconButton } from "./button.js";
import { Memory } from "./memory.js";
import { Operation } from "./operation.js";
import { Tasks } from "./tasks.js";
import { Trace } from "./trace.js";

const TABS = ["tasks", "trace", "memory"];
/** An additional tab, for operators. */
const tabsOf = (me) => [...TABS, ...(me?.operator ? ["operation"] : [])];
const PARTS = { tasks: Tasks, trace: Trace, memory: Memory, operation: Operation };

export function Panel() {
  const { tab, tasks, me } = state;
  const tabs = tabsOf(me);
  const open = tasks.list.filter((task) => !task.completed).length;
  const key = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = tabs.indexOf(tab);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    showTab(next);
    requestAnimationFrame(() => document.getElementById(`tab-${next}`)?.focus());
  };
  return html`<aside class=${classes("panel", ((tab === "trace" && state.trace.id) || tab === "operation") && "is-wide")} id="panel" aria-label=${t("panel.name")}>
    <header class="panel-head">
      <div class="tabs" role="tablist" aria-label=${t("panel.name")} onKeyDown=${key}>
        ${tabs.map((id) => html`<button type="button" role="tab" id=${`tab-${id}`} aria-selected=${tab === id} aria-controls="tab-panel"
            tabindex=${tab === id ? 0 : -1} onClick=${() => showTab(id)}>${t(`panel.${id}`)}${id === "tasks" && open ? html` <span class="count">${open}<span class="only-heard"> ${t("panel.open")}</span></span>` : null}</button>`)}
      </div>
      <${IconButton} icon="cross" name=${t("panel.close")} class="icon-button only-narrow" onClick=${() => set({ drawer: null })} />
    </header>
    <div class="panel-body" id="tab-panel" role="tabpanel" tabindex="0" aria-labelledby=${`tab-${tab}`}>
      <${PARTS[tab]} />
    </div>
  </aside>`;
}

// The page's other tabs in this browser: each tells the others that it has changed something.

/** Missing in browsers that have no such channel; then a tab reads anew when it is looked at. */
const channel = globalThis.BroadcastChannel ? new BroadcastChannel("adjutant") : null;

/** Tells the other tabs that conversations, questions or tasks have changed. */
export const tellTabs = () => channel?.postMessage("changed");

/** Calls `listener` when another tab has changed something. */
export const onOtherTab = (listener) => channel?.addEventListener("message", listener);

// Turns that are far from what is seen: the browser leaves out their layout and painting, at the height that they have. A
// conversation that was read to its beginning stays as quick as one that was just opened.

import { useEffect } from "./base.js";

/** So far beyond the edges of what is seen, turns are laid out. */
const NEAR = "1500px 0px";

let watcher = null;

function watch(element) {
  const root = element.closest(".scroll");
  if (watcher?.root !== root) {
    watcher?.disconnect();
    watcher = new IntersectionObserver(changed, { root, rootMargin: NEAR });
  }
  watcher.observe(element);
}

function changed(entries) {
  for (const { target, isIntersecting, boundingClientRect } of entries) {
    // Its height is not known yet, or it is not there any more.
    if (!isIntersecting && boundingClientRect.height === 0) continue;
    target.style.containIntrinsicBlockSize = isIntersecting ? "" : `auto ${boundingClientRect.height}px`;
    target.style.contentVisibility = isIntersecting ? "" : "auto";
  }
}

/** Leaves an element out while it is far away. */
export function useFar(element) {
  useEffect(() => {
    const { current } = element;
    watch(current);
    return () => watcher.unobserve(current);
  }, []);
}

// An equation as MathML. The library is loaded with the first one; what it cannot read stays as it was written.

import { h, useLayoutEffect, useRef } from "../parts/base.js";
import { t } from "../words.js";

const MATHML = "http://www.w3.org/1998/Math/MathML";
// Only this is taken of what the library makes of LaTeX.
const ELEMENTS = new Set("math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom msub msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr mtd menclose semantics".split(" "));
const ATTRIBUTES = new Set("display displaystyle scriptlevel mathvariant stretchy fence separator form symmetric largeop movablelimits accent accentunder lspace rspace minsize maxsize linethickness width height depth voffset columnalign rowalign columnspacing rowspacing columnlines rowlines frame notation columnspan rowspan dir".split(" "));
const STYLES = ["textAlign", "padding", "paddingLeft", "paddingRight", "paddingTop", "paddingBottom", "borderLeft", "borderRight", "borderTop", "borderBottom", "fontWeight", "fontStyle"];
const DEPTH_MAX = 60;
const NODES_MAX = 4_000;

let library = null;

export function Equation({ source, markup, isDisplay }) {
  const root = useRef(null);
  useLayoutEffect(() => {
    let isWanted = true;
    const show = (node) => isWanted && root.current.replaceChildren(node);
    show(markup);
    load().then((temml) => show(mathml(temml, source, isDisplay)), () => {}).catch(() => show(markup));
    return () => (isWanted = false);
  }, [source, markup, isDisplay]);
  return h("span", { class: isDisplay ? "md-math is-display" : "md-math", dir: "ltr", ref: root, ...(isDisplay ? { tabIndex: 0, role: "group", "aria-label": t("markdown.equation") } : {}) });
}

/** The library, a script as published that is no module. */
function load() {
  library ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = new URL("../vendor/temml.min.js", import.meta.url).href;
    script.addEventListener("load", () => resolve(globalThis.temml));
    script.addEventListener("error", () => {
      library = null;
      reject(new Error("the library for equations was not loaded"));
    });
    document.head.append(script);
  });
  return library;
}

/** Returns LaTeX as MathML, built from the library's own tree, so that neither HTML nor its nodes are needed. Throws if it cannot be. */
function mathml(temml, source, isDisplay) {
  const tree = temml.__renderToMathMLTree(source, { displayMode: isDisplay, throwOnError: true, trust: false, maxSize: [10, 10], maxExpand: 200, wrap: "none" });
  let left = NODES_MAX;
  const copied = (node, depth) => {
    left -= 1;
    if (depth > DEPTH_MAX || left < 0) throw new Error("an equation of too many parts");
    if (typeof node.text === "string") return [document.createTextNode(node.text)];
    const children = node.children.flatMap((child) => copied(child, depth + 1));
    if (node.type === undefined) return children;
    if (!ELEMENTS.has(node.type)) throw new Error(`<${node.type}> in an equation`);
    const copy = document.createElementNS(MATHML, node.type);
    for (const [name, value] of Object.entries(node.attributes)) if (ATTRIBUTES.has(name)) copy.setAttribute(name, value);
    for (const name of STYLES) if (node.style[name] !== undefined) copy.style[name] = node.style[name];
    copy.append(...children);
    return [copy];
  };
  const fragment = document.createDocumentFragment();
  fragment.append(...copied(tree, 0));
  return fragment;
}

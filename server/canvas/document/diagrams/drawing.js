// @ts-check
/**
 * Diagrams as pictures: Mermaid is loaded when there is one, and draws it as an SVG that is shown as an image.
 *
 * Rule 1: nothing of a diagram is in the page. Mermaid makes and measures its elements in a frame of their own, in which no script
 * runs, and which is there only while it draws. In the image nothing runs, and nothing is loaded.
 * Rule 2: what names an address is refused where it would be set, so that nothing is loaded while it draws, whatever the policy says.
 * Rule 3: one diagram is drawn after the other, and each source once.
 */

import { h } from "../../dom.js";
import { partOf } from "../../loading.js";
import { TEXT } from "../../strings.js";
import { frameDocument, styleNonce } from "../../policy.js";
import DOMPurify from "../../vendor/dompurify.js";

/** @typedef {{svg: string, title: string, width: number, height: number, image: HTMLImageElement}} Picture */
/** A picture, or why there is none. @typedef {Picture|{error: string}} Drawing */

/** So many drawings are kept. */
const KEPT = 100;

/** @type {any} */
const CONFIG = {
  startOnLoad: false,
  securityLevel: "strict",
  suppressErrorRendering: true,
  deterministicIds: true,
  htmlLabels: false,
  flowchart: { htmlLabels: false },
  secure: "secure securityLevel startOnLoad maxTextSize maxEdges suppressErrorRendering htmlLabels fontFamily altFontFamily themeCSS dompurifyConfig".split(" "),
};

/** What loads something in a style: everything but a part of the diagram itself; and what could hide it. */
const ADDRESS = /(?:url|src|image|image-set|cross-fade|element)\(\s*(?!["']?#)|@import|\\/gi;
const ADDRESSES = new Set("href src xlink:href srcset action formaction poster background data ping".split(" "));

const SANITIZED = { USE_PROFILES: { svg: true, svgFilters: true, html: true }, ADD_TAGS: ["foreignObject"], HTML_INTEGRATION_POINTS: { foreignobject: true } };
const REFUSED = { FORBID_TAGS: "a img image feImage audio video source picture track form input button".split(" "), FORBID_ATTR: [...ADDRESSES] };

/** DOMPurify has its text parsed where the policy of the page holds, which asks for a nonce of style elements. */
const HTML = { createHTML: frameDocument, createScriptURL: String };

const mermaidPart = partOf(() => import("../../vendor/mermaid/mermaid.js"), { early: false });

/** @type {Map<string, Drawing>} */
const drawn = new Map();
/** @type {Map<string, Promise<Drawing>>} */
const waiting = new Map();
/** @type {Promise<unknown>} */
let last = Promise.resolve();

/** What a source looks like, if that is known. @param {string} source */
export const drawingOf = (source) => drawn.get(source) ?? null;

/** Waits until nothing is being drawn. */
export async function allDrawn() {
  while (waiting.size > 0) {
    await Promise.all(waiting.values());
  }
}

/** @param {string} source @returns {Promise<Drawing>} */
export function drawDiagram(source) {
  const known = drawn.get(source);
  if (known) {
    return Promise.resolve(known);
  }
  const drawing = waiting.get(source) ?? last.then(() => draw(source));
  waiting.set(source, drawing);
  last = drawing;
  return drawing;
}

/** @param {string} source @returns {Promise<Drawing>} */
async function draw(source) {
  const { default: mermaid, drawIn } = await mermaidPart.get(() => {});
  const frame = await openFrame();
  /** @type {Drawing} */
  let drawing;
  try {
    drawIn(guarded(frame), HTML);
    mermaid.initialize({ ...CONFIG, fontFamily: getComputedStyle(document.body).fontFamily });
    drawing = await pictureOf((await mermaid.render("diagram", source)).svg);
  } catch (error) {
    drawing = { error: error instanceof Error ? error.message : String(error) };
  }
  frame.remove();
  waiting.delete(source);
  drawn.size < KEPT || forget(/** @type {string} */ (drawn.keys().next().value));
  drawn.set(source, drawing);
  return drawing;
}

/** A picture that is shown stays, and can be shown again. @param {string} source */
function forget(source) {
  const drawing = drawn.get(source);
  const address = drawing && "image" in drawing ? drawing.image.src : "";
  document.querySelector(`img[src="${address}"]`) || URL.revokeObjectURL(address);
  drawn.delete(source);
}

/** @returns {Promise<HTMLIFrameElement>} */
function openFrame() {
  const srcdoc = frameDocument("<!doctype html><html><head><style>body { margin: 0 }</style></head><body></body></html>");
  return new Promise((resolve) => {
    const frame = h("iframe", { class: "diagram-frame", sandbox: "allow-same-origin", srcdoc, "aria-hidden": "true", tabIndex: -1, onload: () => resolve(frame) });
    document.body.append(frame);
  });
}

/** The document of a frame (rule 2). @param {HTMLIFrameElement} frame */
function guarded(frame) {
  const { Element, CSSStyleDeclaration, Node, document: stage } = /** @type {any} */ (frame.contentWindow);
  const { setAttribute, setAttributeNS } = Element.prototype;
  const { setProperty } = CSSStyleDeclaration.prototype;
  Element.prototype.setAttribute = function (/** @type {string} */ name, /** @type {any} */ value) {
    mayHave(name, value) && setAttribute.call(this, name, withoutAddresses(value));
  };
  Element.prototype.setAttributeNS = function (/** @type {string} */ space, /** @type {string} */ name, /** @type {any} */ value) {
    mayHave(name, value) && setAttributeNS.call(this, space, name, withoutAddresses(value));
  };
  CSSStyleDeclaration.prototype.setProperty = function (/** @type {any[]} */ ...given) {
    setProperty.call(this, given[0], withoutAddresses(given[1]), given[2]);
  };
  const { set } = Object.getOwnPropertyDescriptor(Node.prototype, "textContent") ?? {};
  for (const name of ["createElement", "createElementNS"]) {
    const create = stage[name];
    stage[name] = (/** @type {any[]} */ ...given) => {
      const element = create.apply(stage, given);
      if (element.localName === "style") {
        element.nonce = styleNonce();
        Object.defineProperty(element, "textContent", { set: (text) => set?.call(element, withoutAddresses(text)) });
      }
      return element;
    };
  }
  return stage;
}

/** @param {string} name @param {any} value */
function mayHave(name, value) {
  return ADDRESSES.has(name.toLowerCase()) ? String(value).startsWith("#") : !/^on/i.test(name);
}

/** @param {any} style */
const withoutAddresses = (style) => String(style).replaceAll(ADDRESS, "none");

/** @param {string} made @returns {Promise<Picture>} */
async function pictureOf(made) {
  /** @type {any} */
  const config = { ...SANITIZED, ...REFUSED, RETURN_DOM_FRAGMENT: true, TRUSTED_TYPES_POLICY: HTML };
  const root = /** @type {any} */ (DOMPurify.sanitize(made, config)).firstElementChild;
  const [, , width, height] = (root?.getAttribute("viewBox") ?? "").split(/[\s,]+/).map((/** @type {string} */ each) => Math.ceil(Number(each)));
  if (!root || !(width > 0 && height > 0)) {
    throw new Error(TEXT.emptyDiagram);
  }
  root.removeAttribute("style");
  root.setAttribute("width", String(width));
  root.setAttribute("height", String(height));
  const svg = new XMLSerializer().serializeToString(root);
  const image = h("img", { src: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), width, height });
  await image.decode();
  return { svg, title: root.querySelector(":scope > title")?.textContent ?? "", width, height, image };
}

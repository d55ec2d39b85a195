// @ts-check
/** Diagrams in a text that is read: a code block of Mermaid becomes its picture once it is complete. Until a changed one is drawn, the last picture stays. */

import { openMenu } from "../../dialogs.js";
import { h } from "../../dom.js";
import { TEXT, say } from "../../strings.js";
import { SOURCE } from "../markdown/visible_text.js";
import { download } from "../files/preview.js";
import { drawDiagram, drawingOf } from "./drawing.js";

/** @typedef {import("./drawing.js").Picture} Picture */

const CODE = 'code[data-language="mermaid" i]';
const PICTURE = "img.document-diagram";

/** Who waits for a diagram. @type {Map<string, Set<() => void>>} */
const waiting = new Map();

/** Two pixels of it for each of the page; and no more than a browser draws. */
const PNG = { scale: 2, longest: 8000 };

/**
 * Shows the diagrams of what was rendered.
 * @param {ParentNode} made
 * @param {Element|null} old  what is shown in its place, if it is one block
 * @param {() => void} loaded  called when there are more pictures
 */
export function showDiagrams(made, old, loaded) {
  const before = old ? [...old.querySelectorAll(`${PICTURE}, ${CODE}`)] : [];
  [...made.querySelectorAll(CODE)].forEach((code, nth) => {
    const source = code.textContent ?? "";
    const isComplete = code.hasAttribute("data-complete");
    const drawing = isComplete ? drawingOf(source) : null;
    if (drawing && "error" in drawing) {
      code.setAttribute("title", drawing.error);
      code.parentElement?.classList.add("document-diagram-wrong");
    } else if (drawing) {
      code.parentElement?.replaceWith(diagramPicture(drawing, source));
    } else {
      // Of more diagrams than are kept, those that are shown are not drawn again.
      isComplete && before[nth]?.getAttribute(SOURCE) !== source && whenDrawn(source, loaded);
      const last = before[nth]?.matches(PICTURE) ? /** @type {Element} */ (before[nth].cloneNode(false)) : null;
      last?.setAttribute(SOURCE, source);
      last && code.parentElement?.replaceWith(last);
    }
  });
}

/** Each is called once, however often the text is rendered meanwhile. @param {string} source @param {() => void} loaded */
async function whenDrawn(source, loaded) {
  const others = waiting.get(source);
  if (others) {
    others.add(loaded);
    return;
  }
  const all = new Set([loaded]);
  waiting.set(source, all);
  await drawDiagram(source);
  waiting.delete(source);
  all.forEach((each) => each());
}

/** @param {Picture} picture @param {string} source @returns {HTMLImageElement} */
export function diagramPicture({ image, title }, source) {
  const made = /** @type {HTMLImageElement} */ (image.cloneNode());
  const alt = title || say(TEXT.diagram, { kind: source.trim().split(/\s/)[0] });
  const attributes = { class: "document-diagram", alt, tabindex: 0, role: "button", "aria-haspopup": "menu", [SOURCE]: source };
  Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, String(value)));
  return made;
}

/**
 * Opens the menu of a diagram, if it is one.
 * @param {EventTarget|null} target
 * @param {string} name  of the file that it is saved as, without its ending
 * @param {(() => void)|null} select  selects its source
 * @returns {boolean}
 */
export function openDiagramMenu(target, name, select) {
  const image = target instanceof HTMLElement && target.matches(PICTURE) ? target : null;
  const drawing = image && drawingOf(image.getAttribute(SOURCE) ?? "");
  if (!image || !drawing || "error" in drawing) {
    return image !== null;
  }
  openMenu(image, [
    ...(select ? [{ text: TEXT.selectDiagram, sign: "edit", run: select }] : []),
    { text: TEXT.saveSvg, sign: "download", run: () => download(new Blob([drawing.svg], { type: "image/svg+xml" }), `${name}.svg`) },
    { text: TEXT.savePng, sign: "download", run: async () => download(await pngOf(drawing), `${name}.png`) },
  ]);
  return true;
}

/** On white paper, as SVG has none. @param {Picture} picture @returns {Promise<Blob>} */
async function pngOf({ svg, width, height }) {
  // The address has all of it: a canvas may not be read that has drawn elements of HTML from a blob.
  const image = h("img", { src: `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}` });
  await image.decode();
  const scale = Math.min(PNG.scale, PNG.longest / Math.max(width, height));
  const canvas = h("canvas", { width: Math.ceil(width * scale), height: Math.ceil(height * scale) });
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

// @ts-check
/**
 * The only place where a string becomes HTML. What a text may show is listed here, and nothing else passes: no styles, event
 * handlers, forms, frames or ids, links only to http, https and mailto, and no image of another host.
 *
 * What names a file of the conversation or a heading keeps that name in `data-to`, and never as an address: the browser follows
 * and loads none of it. links.js does, with what the conversation has.
 */

import DOMPurify from "../../vendor/dompurify.js";
import { imageAddress, linkAddress, localAddress } from "../files/addresses.js";

const CONFIG = {
  ALLOWED_TAGS: [
    ..."a b blockquote br code del details div em h1 h2 h3 h4 h5 h6 hr i img kbd li ol p pre s span strong sub summary sup".split(" "),
    ..."table tbody td tfoot th thead tr ul #text".split(" "),
  ],
  ALLOWED_ATTR: "align alt aria-checked aria-label class data-complete data-language data-note href open role src start tabindex title".split(" "),
  ALLOW_ARIA_ATTR: false,
  ALLOW_DATA_ATTR: false,
  ALLOW_UNKNOWN_PROTOCOLS: false,
  KEEP_CONTENT: true,
  RETURN_DOM_FRAGMENT: true,
};

/** @type {any} */
let purifier = null;

/**
 * @param {string} html
 * @returns {DocumentFragment}
 */
export function sanitize(html) {
  purifier ??= createPurifier();
  return purifier.sanitize(html, CONFIG);
}

function createPurifier() {
  const created = DOMPurify(window);
  created.addHook("afterSanitizeAttributes", (/** @type {Element} */ element) => {
    keepClass(element);
    if (element.tagName === "A") {
      guardLink(/** @type {HTMLAnchorElement} */ (element));
    } else if (element.tagName === "IMG" && localAddress(element.getAttribute("src") ?? "")) {
      element.setAttribute("data-to", element.getAttribute("src") ?? "");
      element.removeAttribute("src");
    } else if (element.tagName === "IMG" && !imageAddress(element.getAttribute("src") ?? "")) {
      element.replaceWith(linkTo(element));
    } else {
      element.removeAttribute("href");
    }
  });
  return created;
}

/** Only classes of the document's own style sheet, so that a text cannot look like a part of the page. @param {Element} element */
function keepClass(element) {
  const name = element.getAttribute("class");
  if (name !== null && !/^document-(task|note|image-link|math|formula)$/.test(name)) {
    element.removeAttribute("class");
  }
}

/** @param {HTMLAnchorElement} link */
function guardLink(link) {
  const address = link.getAttribute("href") ?? "";
  if (!linkAddress(address)) {
    link.removeAttribute("href");
    localAddress(address) && link.setAttribute("data-to", address);
    return;
  }
  link.setAttribute("rel", "noopener noreferrer");
  link.setAttribute("target", "_blank");
}

/** A link in place of an image that is not loaded. @param {Element} image */
function linkTo(image) {
  const address = image.getAttribute("src") ?? "";
  const link = image.ownerDocument.createElement("a");
  link.className = "document-image-link";
  link.textContent = image.getAttribute("alt") || address;
  link.setAttribute("href", address);
  guardLink(link);
  return link;
}

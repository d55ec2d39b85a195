// @ts-check
/**
 * What the page's Content-Security-Policy asks of the page: style elements carry the nonce of this answer, and a string
 * becomes HTML or the address of a program in named places only (Trusted Types): here, and in DOMPurify.
 */

/** The nonce of style elements. */
export const styleNonce = () => /** @type {HTMLElement|null} */ (document.querySelector("style[nonce]"))?.nonce ?? "";

/** @type {any} */
let types;

const RULES = { createHTML: String, createScriptURL: String };

/** @returns {{createHTML: (html: string) => any, createScriptURL: (url: string) => any}} */
function trustedTypes() {
  types ??= /** @type {any} */ (globalThis).trustedTypes?.createPolicy("a2a-canvas", RULES) ?? RULES;
  return types;
}

/** The document of a frame without scripts, which has the policy of the page. @param {string} html @returns {string} */
export function frameDocument(html) {
  return trustedTypes().createHTML(html.replace(/<style\b/gi, `<style nonce="${styleNonce()}"`));
}

/** A program of the page that runs in all of its windows together. @param {URL} url */
export const sharedWorker = (url) => new SharedWorker(trustedTypes().createScriptURL(url.href), { type: "module" });

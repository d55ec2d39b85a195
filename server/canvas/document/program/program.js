// @ts-check
/**
 * A program that runs: an HTML document with its scripts, in a frame with an origin and a policy of its own (shell.js and the
 * server's `page/program`), and what goes wrong in it. What the frame says may come from the program: it is text, and limited.
 */

import { button } from "../../controls.js";
import { h } from "../../dom.js";
import { icon } from "../../icons.js";
import { TEXT, say } from "../../strings.js";
import { plainName } from "../../words.js";

const ADDRESS = "page/program";
const MOST_ERRORS = 20;
/** In characters. */
const LONGEST = 500;
/** A program that says more than this is stopped: it would keep the page busy. */
const MOST_MESSAGES = 1_000;
/** What the frame says may come after it is known to be loaded. In milliseconds. */
const READY_MS = 5_000;

/**
 * @param {{text: string, name: string, onFix?: (error: string) => void}} options  `onFix` is called with an error that the user
 *     wants to be fixed
 * @returns {{element: HTMLElement, destroy: () => void}}
 */
export function createProgram({ text, name, onFix }) {
  const title = say(TEXT.programOf, { name: plainName(name) });
  const frame = h("iframe", { class: "document-frame", sandbox: "allow-scripts", referrerpolicy: "no-referrer", title, src: ADDRESS });
  const list = h("ul");
  const errors = h("section", { class: "document-errors", role: "log", "aria-label": TEXT.programErrors, tabIndex: 0, hidden: true }, list);
  const element = h("div", { class: "document-program" }, frame, errors);
  const known = new Set();
  let messages = 0;
  let isReady = false;
  addEventListener("message", take);
  document.addEventListener("securitypolicyviolation", onRefused);
  let waiting = 0;
  frame.addEventListener("load", () => (waiting ||= window.setTimeout(() => isReady || end(TEXT.programNotStarted), READY_MS)));
  return { element, destroy };

  /** @param {MessageEvent} event */
  function take({ source, data }) {
    if (source !== frame.contentWindow || source === null) {
      return;
    }
    if (messages++ >= MOST_MESSAGES) {
      end(TEXT.programTooLoud);
    } else if (data?.ready === true) {
      // Also of one that has reloaded itself.
      isReady = true;
      frame.contentWindow.postMessage({ program: text }, "*");
      frame.focus();
    } else if (typeof data?.error === "string") {
      show(data.error.slice(0, LONGEST));
    }
  }

  /** A program that wants its frame to go elsewhere is refused by the policy of the page. @param {SecurityPolicyViolationEvent} event */
  function onRefused({ effectiveDirective, blockedURI }) {
    if (effectiveDirective === "frame-src") {
      end(isReady ? say(TEXT.programLeft, { address: blockedURI }) : TEXT.programNotStarted);
    }
  }

  /** @param {string} error */
  function show(error) {
    if (known.has(error) || known.size >= MOST_ERRORS) {
      return;
    }
    known.add(error);
    const fix = onFix && button(TEXT.fixIt, ({ currentTarget }) => ((currentTarget.disabled = true), onFix(error)), { class: "link-button" });
    list.append(h("li", {}, icon("failed", 14), h("code", { dir: "auto" }, error), fix));
    errors.hidden = false;
  }

  /** @param {string} why */
  function end(why) {
    destroy();
    known.size < MOST_ERRORS || known.clear();
    show(why);
  }

  function destroy() {
    clearTimeout(waiting);
    removeEventListener("message", take);
    document.removeEventListener("securitypolicyviolation", onRefused);
    frame.remove();
  }
}

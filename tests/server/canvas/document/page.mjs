/** A document for modules that need one: import this before them. */
import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html><body></body>");
for (const name of ["window", "document", "Node", "Text", "Element", "HTMLElement", "DocumentFragment", "NodeFilter"]) {
  globalThis[name] = name === "window" ? window : window[name];
}

// @ts-check
/**
 * What stands beside a passage: it follows it while the document scrolls; on a narrow screen it is at the bottom. Where it is above
 * the passage or at the bottom it has the class `over`: what it opens to is above, so that nothing moves that is seen already.
 */

import { placeBeside } from "./placing.js";

const MARGIN = 8;
/** On narrow screens it is at the bottom; style/document.css has the same width. */
const narrow = () => matchMedia("(max-width: 720px)");

/**
 * @param {HTMLElement} element
 * @param {HTMLElement} panel  what shows the document
 * @param {() => DOMRect|null|undefined} rect  where the passage is on the screen; null if it is not seen, undefined if there is none
 * @param {() => number} [grows]  how much higher it may become while it is there, in pixels: it stays on its side of the passage then
 * @returns {{move: () => void, isNarrow: () => boolean}}
 */
export function keepBeside(element, panel, rect, grows = () => 0) {
  const screen = narrow();
  addEventListener("scroll", move, { capture: true, passive: true });
  addEventListener("resize", move, { passive: true });
  new ResizeObserver(move).observe(panel);
  visualViewport?.addEventListener("resize", move);
  visualViewport?.addEventListener("scroll", move);
  return { move, isNarrow: () => screen.matches };

  function move() {
    const there = element.hidden ? undefined : rect();
    if (there === undefined) {
      return;
    }
    if (screen.matches) {
      const seen = visualViewport;
      const covered = seen ? Math.max(0, innerHeight - seen.height - seen.offsetTop) : 0;
      element.classList.remove("away");
      element.classList.add("over");
      element.style.maxWidth = "";
      element.style.transform = covered > 0 ? `translateY(${-Math.round(covered)}px)` : "";
      return;
    }
    element.classList.toggle("away", there === null);
    if (there) {
      const pane = panel.getBoundingClientRect();
      element.style.maxWidth = `${Math.round(pane.width - 2 * MARGIN)}px`;
      const { left, top } = placeBeside(there, { width: element.offsetWidth, height: element.offsetHeight, grows: grows() }, pane);
      element.style.transform = `translate(${Math.round(left)}px, ${Math.round(top)}px)`;
      element.classList.toggle("over", top < there.top);
    }
  }
}

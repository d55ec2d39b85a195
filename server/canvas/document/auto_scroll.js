// @ts-check
/** Keeps the end of a growing text in view, unless the user has scrolled away from it. */

/** So near to the end, the end is in view. In pixels. */
const AT_END = 48;

/** What the user does may move the text for so long, in milliseconds. Other moves are the browser's, whose layout has changed. */
const MOVING = 1000;

const INPUTS = ["wheel", "touchmove", "keydown", "pointerdown"];

/**
 * @param {HTMLElement} scroller
 * @param {{scrollToEnd: () => void, onChange: () => void}} options  `onChange` is called when it begins or ceases to follow
 */
export function createAutoScroll(scroller, { scrollToEnd, onChange }) {
  let following = true;
  let growing = false;
  /** It grew, and the user has done nothing since its end: what is laid out late still belongs to it. */
  let settling = false;
  let last = 0;
  let touched = -MOVING;
  for (const input of INPUTS) {
    scroller.addEventListener(input, () => ((touched = performance.now()), (settling &&= growing)), { passive: true });
  }
  scroller.addEventListener("scroll", onScroll, { passive: true });
  // Heights are estimates until the browser has laid out what is new.
  const content = scroller.firstElementChild;
  const observer = content && "ResizeObserver" in globalThis ? new ResizeObserver(() => settling && follow()) : null;
  content && observer?.observe(content);
  return {
    /** Whether the end is to be kept in view. */
    following: () => following,
    /** Says that it is to be kept in view from now on, or not. @param {boolean} value */
    set(value) {
      change(value);
      last = scroller.scrollTop;
    },
    /** To be called when the text has changed. What closes it may have its last lines, too. @param {boolean} goesOn */
    textChanged(goesOn) {
      (growing || goesOn) && follow();
      growing = goesOn;
      settling ||= goesOn;
    },
    isAtEnd,
    destroy: () => observer?.disconnect(),
  };

  function follow() {
    if (following) {
      scrollToEnd();
      last = scroller.scrollTop;
    }
  }

  function isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight <= AT_END;
  }

  /** Who scrolls up leaves the end, who comes back to it follows it again. */
  function onScroll() {
    const up = scroller.scrollTop < last && performance.now() - touched < MOVING;
    last = scroller.scrollTop;
    if (isAtEnd()) {
      change(true);
    } else if (up) {
      change(false);
    }
  }

  /** @param {boolean} value */
  function change(value) {
    if (following !== value) {
      following = value;
      onChange();
    }
  }
}

// @ts-check
/** Keeps the end of a growing text in view, unless the user has scrolled away from it. */

/** So near to the end, the end is in view. */
const AT_END = 48;

/**
 * @param {HTMLElement} scroller
 * @param {(following: boolean) => void} onChange
 */
export function createFollower(scroller, onChange) {
  let following = true;
  let last = 0;
  scroller.addEventListener("scroll", noticed, { passive: true });
  return {
    /** Whether the end is to be kept in view. */
    following: () => following,
    /** Says that it is to be kept in view from now on, or not. @param {boolean} value */
    set(value) {
      change(value);
      last = scroller.scrollTop;
    },
    /** To be called when the text has grown. */
    grown() {
      if (following) {
        scroller.scrollTop = scroller.scrollHeight;
        last = scroller.scrollTop;
      }
    },
    isAtEnd,
  };

  function isAtEnd() {
    return scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight <= AT_END;
  }

  /** Growth moves nothing up: who scrolls up leaves the end, who comes back to it follows it again. */
  function noticed() {
    const up = scroller.scrollTop < last;
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
      onChange(value);
    }
  }
}

// @ts-check
/**
 * Tells when a selection has come to rest: the pointer is up again, or the keyboard has paused. Until then nothing is placed
 * beside it that would be in the way.
 */

/** Delay after the last change from the keyboard, before a selection counts as settled. */
const REST_MS = 350;

/**
 * @param {HTMLElement} element  in which it is selected
 * @param {(byUser: boolean) => void} settled  `byUser`: a key or the pointer was pressed in the element since it was called last
 * @returns {{selectionChanged: () => void, end: () => void}}  `selectionChanged` is to be called at each change of the selection
 */
export function createSettling(element, settled) {
  let pressed = false;
  let pending = false;
  let byUser = false;
  let timer = 0;
  const controller = new AbortController();
  /** @param {string} type @param {(event: any) => void} listener */
  const listen = (type, listener) => document.addEventListener(type, listener, { capture: true, signal: controller.signal });
  listen("pointerdown", ({ target }) => {
    pressed = true;
    clearTimeout(timer);
    noteUse(target);
  });
  listen("keydown", ({ target }) => noteUse(target));
  listen("pointerup", onRelease);
  listen("pointercancel", onRelease);

  return {
    selectionChanged() {
      pending = true;
      pressed || restart(REST_MS);
    },
    end() {
      controller.abort();
      clearTimeout(timer);
    },
  };

  /** @param {EventTarget|null} target */
  function noteUse(target) {
    byUser ||= target instanceof Node && element.contains(target);
  }

  function onRelease() {
    pressed = false;
    // The browser changes the selection after this event.
    restart(0);
  }

  /** @param {number} delay */
  function restart(delay) {
    clearTimeout(timer);
    timer = window.setTimeout(tell, delay);
  }

  function tell() {
    if (pending && !pressed) {
      const was = byUser;
      pending = byUser = false;
      settled(was);
    }
  }
}

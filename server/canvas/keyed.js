// @ts-check
/**
 * What a place shows, keyed by what it is of. What was made for one key is never seen, updated or asked for another one: it
 * goes as soon as another key is shown, and what is made too late is never placed.
 */

/**
 * @template {{element: HTMLElement, destroy: () => void}} T
 * @param {HTMLElement} place
 * @param {() => Node} waiting  what is seen there until it is made
 * @returns {{show: (key: string, make: () => Promise<T>, placed: (made: T) => void) => T|null, current: () => T|null, clear: () => void}}
 *     `show` gives what is there for a key, or begins to make it, and calls `placed` when it is
 */
export function createKeyed(place, waiting) {
  /** @type {string|null} */
  let wanted = null;
  /** @type {T|null} */
  let there = null;
  return { show, clear, current: () => there };

  /** @param {string} key @param {() => Promise<T>} make @param {(made: T) => void} placed */
  function show(key, make, placed) {
    if (key !== wanted) {
      clear();
      wanted = key;
      place.replaceChildren(waiting());
      begin(key, make, placed);
    }
    return there;
  }

  /** @param {string} key @param {() => Promise<T>} make @param {(made: T) => void} placed */
  async function begin(key, make, placed) {
    const made = await make();
    if (key !== wanted) {
      made.destroy();
      return;
    }
    there = made;
    place.replaceChildren(made.element);
    placed(made);
  }

  function clear() {
    wanted = null;
    there?.destroy();
    there = null;
    place.replaceChildren();
  }
}

// @ts-check
/**
 * The newest words of a document that grows fade in: they go through highlights, from the palest on, where the browser has
 * these (style/document.css). The page itself is not changed, so nothing moves, and the work is that of the new words alone.
 */

const STEPS = ["document-new-1", "document-new-2", "document-new-3"];
const STEP_MS = 70;

/** What comes at once and is longer than this was not written just now. In characters. */
export const MOST_NEW = 2000;

/** @returns {{add: (ranges: Range[]) => void, end: () => void}}  `add` lets words that were just shown fade in */
export function createFade() {
  const { CSS: { highlights } = {}, Highlight } = /** @type {any} */ (globalThis);
  const marks = highlights ? STEPS.map((name) => ({ name, words: new Highlight() })) : [];
  return { add, end };

  /** @param {Range[]} ranges */
  function add(ranges) {
    if (ranges.length > 0 && !matchMedia("(prefers-reduced-motion: reduce)").matches) {
      show(ranges, 0);
    }
  }

  /** @param {Range[]} ranges @param {number} step */
  function show(ranges, step) {
    for (const range of ranges) {
      marks[step - 1]?.words.delete(range);
      marks[step]?.words.add(range);
    }
    register();
    step < marks.length && setTimeout(() => show(ranges, step + 1), STEP_MS);
  }

  function end() {
    marks.splice(0).forEach(({ name }) => highlights.delete(name));
  }

  function register() {
    for (const { name, words } of marks) {
      words.size > 0 ? highlights.set(name, words) : highlights.delete(name);
    }
  }
}

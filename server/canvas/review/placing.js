// @ts-check
/** Where the threads stand beside the text. Pure. */

/**
 * Each thread stands at its passage, or as near below as there is room; the chosen one stands at its passage for certain, and
 * those before it make room.
 * @param {readonly {top: number, height: number}[]} threads  in order; `top` is that of the passage
 * @param {number} chosen  the index of the chosen one; -1 for none
 * @param {number} gap
 * @returns {number[]}  where each begins
 */
export function placeThreads(threads, chosen, gap) {
  const tops = threads.map(({ top }) => top);
  for (let at = 1; at < tops.length; at++) {
    if (at !== chosen) {
      tops[at] = Math.max(tops[at], tops[at - 1] + threads[at - 1].height + gap);
    }
  }
  for (let at = chosen - 1; at >= 0; at--) {
    tops[at] = Math.min(tops[at], tops[at + 1] - threads[at].height - gap);
  }
  return tops;
}

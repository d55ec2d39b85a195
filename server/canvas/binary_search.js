// @ts-check
/** Finds a place in what is in order. Pure. */

/**
 * The first index for which `test` holds, as it does for all that follow; `count` if it holds for none.
 * @param {number} count
 * @param {(index: number) => boolean} test
 */
export function firstIndex(count, test) {
  let low = 0;
  let high = count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// @ts-check
/** Where the bar is: beside its passage and within the pane of the document, never over its head or the chat. Pure. */

const MARGIN = 8;

/**
 * Above the passage where there is room in the pane, also for what it grows by, else below it; if there is none either, at the end of the pane.
 * @param {{left: number, top: number, bottom: number}} passage  as far as it is seen
 * @param {{width: number, height: number, grows?: number}} bar
 * @param {{left: number, right: number, top: number, bottom: number}} pane
 * @returns {{left: number, top: number}}
 */
export function placeBeside(passage, bar, pane) {
  const above = passage.top - bar.height - MARGIN;
  const below = passage.bottom + MARGIN;
  const lowest = pane.bottom - bar.height - MARGIN;
  const left = Math.min(passage.left, pane.right - bar.width - MARGIN);
  return { left: Math.max(pane.left + MARGIN, left), top: above - (bar.grows ?? 0) >= pane.top ? above : Math.max(pane.top, Math.min(below, lowest)) };
}

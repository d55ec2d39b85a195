// @ts-check
/**
 * The other windows of this page in the same browser. Over HTTP/1.1 all of them together have six connections to a server, and
 * each stream takes one: what is sent then waits, and the user has to know why.
 */

const CHANNEL = "a2a-canvas.windows";
const ANSWER_MS = 300;

/**
 * @param {{visible?: () => boolean}} [options]
 * @returns {{others: () => Promise<number>, close: () => void}}  `others` counts those that are shown now
 */
export function createWindows({ visible = () => document.visibilityState === "visible" } = {}) {
  const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(CHANNEL) : null;
  let answers = 0;
  channel?.addEventListener("message", ({ data }) => {
    if (data === "here") {
      answers++;
    } else if (visible()) {
      channel.postMessage("here");
    }
  });
  return {
    async others() {
      answers = 0;
      channel?.postMessage("who");
      await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
      return answers;
    },
    close: () => channel?.close(),
  };
}

/** Whether the page came over HTTP/1.1, with its few connections. */
export function hasFewConnections() {
  const [entry] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  return entry?.nextHopProtocol === "http/1.1";
}

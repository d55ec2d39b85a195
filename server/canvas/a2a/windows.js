// @ts-check
/**
 * The other windows of this page in the same browser. Over HTTP/1.1 they have six connections to a server between them. Windows
 * of one conversation share their streams; each further conversation takes connections of its own, and a message may have to wait.
 */

import { randomId } from "./ids.js";

const CHANNEL = "a2a-canvas.windows";
const ANSWER_MS = 300;

/**
 * @param {object} options
 * @param {() => string|null} options.shown  the conversation of this window
 * @param {() => boolean} [options.visible]  a hidden window has no streams
 * @param {boolean} [options.shares]  whether windows share their streams; otherwise each has its own
 * @returns {{others: () => Promise<number>, close: () => void}}  `others` counts those that have streams other than this window's,
 *     windows that share them as one
 */
export function createWindows({ shown, visible = () => document.visibilityState === "visible", shares = typeof SharedWorker === "function" }) {
  const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel(CHANNEL) : null;
  const own = randomId();
  const streams = () => (shares ? shown() : shown() && own);
  channel?.addEventListener("message", ({ data: { from } }) => {
    if (from && visible() && shown()) {
      channel.postMessage({ to: from, streams: streams() });
    }
  });
  return {
    async others() {
      const asked = randomId();
      /** @type {Set<string>} */
      const found = new Set();
      const hear = (/** @type {MessageEvent} */ { data }) => data.to === asked && data.streams !== streams() && found.add(data.streams);
      channel?.addEventListener("message", hear);
      channel?.postMessage({ from: asked });
      await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
      channel?.removeEventListener("message", hear);
      return found.size;
    },
    close: () => channel?.close(),
  };
}

/** Whether the page came over HTTP/1.1, with its few connections. */
export function hasFewConnections() {
  const [entry] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType("navigation"));
  return entry?.nextHopProtocol === "http/1.1";
}

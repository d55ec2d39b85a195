// @ts-check
/**
 * The line to an MCP host in whose frame a view runs: JSON-RPC over messages between windows (MCP Apps, 2026-01-26).
 *
 * Rule: only the window that frames the view is heard, and it is heard whatever its origin: hosts frame views from origins of
 * their own, and a view knows nothing that it would keep from its host.
 */

const VERSION = "2026-01-26";

/**
 * @typedef {object} Bridge
 * @property {(method: string, params?: Json) => Promise<any>} request
 * @property {(method: string, params?: Json) => void} notify
 * @property {Promise<Json>} opened  what the host says of itself, once it has
 */

/**
 * @param {Record<string, (params: any) => void>} listeners  by the method of a notification
 * @param {Window} host
 * @returns {Bridge}
 */
export function createBridge(listeners, host = parent) {
  let last = 0;
  /** @type {Map<number, {resolve: (result: any) => void, reject: (error: Error) => void}>} */
  const waiting = new Map();
  const send = (/** @type {Json} */ message) => host.postMessage({ jsonrpc: "2.0", ...message }, "*");

  /** @param {string} method @param {Json} [params] */
  function request(method, params = {}) {
    const id = ++last;
    send({ id, method, params });
    return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
  }

  addEventListener("message", ({ source, data }) => {
    if (source !== host || data?.jsonrpc !== "2.0") {
      return;
    }
    const { id, method, params, result, error } = data;
    if (method) {
      listeners[method]?.(params ?? {});
      id === undefined || send({ id, ...answers[method] ?? { error: { code: -32601, message: "This view does not know that." } } });
      return;
    }
    const asked = waiting.get(id);
    waiting.delete(id);
    error ? asked?.reject(new Error(error.message)) : asked?.resolve(result);
  });

  const opened = request("ui/initialize", {
    protocolVersion: VERSION,
    appInfo: { name: "a2a-canvas", version: "1" },
    appCapabilities: {},
  }).then((result) => (send({ method: "ui/notifications/initialized", params: {} }), result));
  return { request, notify: (method, params = {}) => send({ method, params }), opened };
}

/** What is answered to the host's requests. @type {Record<string, Json>} */
const answers = { ping: { result: {} }, "ui/resource-teardown": { result: {} } };

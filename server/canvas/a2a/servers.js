// @ts-check
/** The servers that the page can be a client of: its own, and those of other origins that its operator names. */

import { RequestFailed } from "./request_failed.js";
import { TEXT, say } from "../strings.js";

/**
 * The address of the server that `?server=` names, with a slash at its end.
 * @param {string|null} asked
 * @param {string} home  the page's own server
 * @returns {string}
 * @throws {RequestFailed} it is no address
 */
export function serverAddress(asked, home) {
  if (!asked) {
    return home;
  }
  const address = URL.canParse(asked, home) ? new URL(asked, home) : null;
  if (!address || !/^https?:$/.test(address.protocol)) {
    throw new RequestFailed(say(TEXT.notAnAddress, { asked }), 0);
  }
  return `${address.origin}${address.pathname.replace(/\/?$/, "/")}`;
}

/** The origins that the operator of the page names. @param {string} home @param {typeof fetch} [send] @returns {Promise<string[]>} */
export async function otherServers(home, send = (...given) => fetch(...given)) {
  const response = await send(home, { headers: { Accept: "application/json" } });
  const { servers = [] } = await response.json();
  return servers;
}

/**
 * Why a server of another origin does not answer. A browser does not tell a page, so it is found out.
 * @param {string} base
 * @param {string} home
 * @param {typeof fetch} [send]
 * @returns {Promise<string>}
 */
export async function whyNoAnswer(base, home, send = (...given) => fetch(...given)) {
  const { origin } = new URL(base);
  const own = new URL(home).origin;
  const allowed = await otherServers(home, send).catch(() => [origin]);
  if (!allowed.includes(origin)) {
    return say(TEXT.mayNotConnect, { origin });
  }
  try {
    await send(base, { mode: "no-cors", credentials: "omit" });
  } catch {
    return say(TEXT.otherDoesNotAnswer, { origin });
  }
  return say(TEXT.otherRefusesPage, { origin, own });
}

/**
 * The address at which the server of a card speaks A2A 1.0 over JSON-RPC.
 * @param {any} card
 * @returns {string}
 * @throws {RequestFailed} it speaks something else
 */
export function jsonRpcAddress(card) {
  const interfaces = Array.isArray(card?.supportedInterfaces) ? card.supportedInterfaces : [];
  const found = interfaces.find(
    (/** @type {any} */ each) => each.protocolBinding === "JSONRPC" && String(each.protocolVersion ?? "").startsWith("1."),
  );
  if (found) {
    return found.url;
  }
  const versions = [card?.protocolVersion, ...interfaces.map((/** @type {any} */ each) => each.protocolVersion)].filter(Boolean);
  const bindings = interfaces.filter((/** @type {any} */ each) => String(each.protocolVersion).startsWith("1.")).map((/** @type {any} */ each) => each.protocolBinding);
  if (bindings.length) {
    throw new RequestFailed(say(TEXT.needsJsonRpc, { bindings: bindings.join(" and ") }), 0);
  }
  throw new RequestFailed(
    versions.length
      ? say(TEXT.needsVersion1, { versions: [...new Set(versions)].join(" and ") })
      : TEXT.notAnAgentCard,
    0,
  );
}

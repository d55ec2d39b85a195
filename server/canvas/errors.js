// @ts-check
/**
 * What the user reads when a request fails.
 * Rule 1: most of the server's words are for developers of clients; the developer view has them. What
 *         it says of access, limits and failures is for users: who may do what, how much, and whether to try again. Each code
 *         has its place in this table or in SERVERS_WORDS (tests/server/canvas/errors.test.mjs).
 */

import { RequestFailed } from "./a2a/request_failed.js";

const UNUSABLE = "The server could not process this request. See the developer view for details.";
const GONE = "This no longer exists.";
const ENDED = "This task has ended. Send a new message.";
const OTHER_FILES = "This server does not take files of this type.";

/** In place of the server's words. HTTP's are positive, JSON-RPC's negative. @type {Map<number, string>} */
export const OWN_WORDS = new Map([
  ...[400, 405, 406, 410, 421, -32600, -32601, -32602, -32700, -32003, -32006, -32007, -32008, -32009].map(
    (code) => /** @type {[number, string]} */ ([code, UNUSABLE]),
  ),
  [404, GONE],
  [-32001, "This task no longer exists."],
  [-32002, ENDED],
  [-32004, ENDED],
  [415, OTHER_FILES],
  [-32005, OTHER_FILES],
]);

/**
 * @param {unknown} error
 * @param {string} [unusable]  what to say where the server could not use what was asked
 * @returns {string}
 */
export function sentence(error, unusable = UNUSABLE) {
  const own = error instanceof RequestFailed && OWN_WORDS.get(error.code);
  if (own) {
    return own === UNUSABLE ? unusable : own;
  }
  return error instanceof Error ? error.message : String(error);
}

// @ts-check
/**
 * A request that was refused. `message` is a sentence for the user.
 * `code` is that of JSON-RPC, or the status of HTTP; 0 if nobody answered.
 */
export class RequestFailed extends Error {
  /** @param {string} message @param {number} code @param {any[]} [details] */
  constructor(message, code, details = []) {
    super(message);
    this.code = code;
    this.details = details;
  }
}

/** JSON-RPC's code of A2A's UnsupportedOperation: a finished task has no stream. */
export const UNSUPPORTED = -32004;
/** JSON-RPC's code of A2A's TaskNotFound. */
export const TASK_NOT_FOUND = -32001;
/** JSON-RPC's own: the server has no such method. */
export const NO_METHOD = -32601;

// @ts-check
/**
 * The log of a client: its requests, and what came back for each, for the developer view. It is bounded by the number of
 * its entries and by their size on the wire; the oldest go first.
 */

/**
 * A request as it was sent.
 * @typedef {{url: string, method: string, headers: Record<string, string>, body: string|null}} Request
 *
 * @typedef {object} LogEntry
 * @property {number} number  counts the entries of the log
 * @property {number} at  ms since 1970
 * @property {number} since  ms since its request
 * @property {"request"|"event"|"error"} kind
 * @property {string} name  the method of the request, or its path
 * @property {string} event  the type of a server-sent event that says more than its content, as "activity"
 * @property {any} content  what was received; of a request it is in `request`
 * @property {Request} request  the one that it is, or that it came for
 * @property {number} size  in characters
 */

/** @typedef {ReturnType<typeof createLog>} Log */

/** Told of what comes for a request. @typedef {ReturnType<Log["request"]>} Exchange */

const MAX_ENTRIES = 2_000;
const MAX_SIZE = 16_000_000;

/** @param {{entries?: number, size?: number, now?: () => number}} [options] */
export function createLog({ entries: maxEntries = MAX_ENTRIES, size: maxSize = MAX_SIZE, now = Date.now } = {}) {
  /** @type {LogEntry[]} */
  let entries = [];
  let size = 0;
  let number = 0;
  let changed = () => {};

  /** @param {Omit<LogEntry, "number">} entry */
  function add(entry) {
    entries.push({ number: ++number, ...entry });
    size += entry.size;
    while (entries.length > maxEntries || (size > maxSize && entries.length > 1)) {
      size -= /** @type {LogEntry} */ (entries.shift()).size;
    }
    changed();
  }

  return {
    /** @returns {readonly LogEntry[]} oldest first */
    entries: () => entries,

    clear() {
      entries = [];
      size = 0;
      changed();
    },

    /** The one who is told when entries have been added or cleared; none costs nothing. @param {() => void} listener */
    watch(listener) {
      changed = listener;
    },

    /** @param {string} name @param {Request} request */
    request(name, request) {
      const began = now();
      add({ at: began, since: 0, kind: "request", name, event: "", content: null, request, size: request.body?.length ?? 0 });
      /** @param {"event"|"error"} kind @param {string} event @param {any} content @param {number} length */
      const record = (kind, event, content, length) => {
        const at = now();
        add({ at, since: at - began, kind, name, event, content, request, size: length });
      };
      return {
        /** @param {any} content @param {number} length  of its JSON @param {string} [event] */
        received: (content, length, event = "") => record("event", event, content, length),
        /** @param {string} error */
        failed: (error) => record("error", "", error, error.length),
      };
    },
  };
}

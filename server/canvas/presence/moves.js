// @ts-check
/** Tells the server where the user's cursor is: only after a move, and at most once a second. */

/** @typedef {{contextId: string, artifactId?: string, version?: number, start?: number, end?: number}} Move  without an artifact the cursor is withdrawn */

const INTERVAL_MS = 1_000;

/**
 * @param {(move: Move) => Promise<unknown>} send
 * @param {{now?: () => number, later?: (run: () => void, ms: number) => any}} [options]
 */
export function createMoves(send, { now = () => performance.now(), later = (run, ms) => setTimeout(run, ms) } = {}) {
  /** @type {Move|null} */
  let wanted = null;
  /** @type {Move|null} */
  let sent = null;
  let sentAt = -INTERVAL_MS;
  let waits = false;

  function flush() {
    waits = false;
    if (wanted && !isSame(wanted, sent)) {
      sent = wanted;
      sentAt = now();
      send(wanted).catch(() => {}); // the next move is the next attempt
    }
  }

  return {
    /** @param {Move} move */
    move(move) {
      wanted = move;
      if (!waits && !isSame(move, sent)) {
        waits = true;
        later(flush, Math.max(0, sentAt + INTERVAL_MS - now()));
      }
    },
    /** The conversation in which others see a cursor; null for none. */
    shownIn: () => (sent?.artifactId === undefined ? null : sent.contextId),
  };
}

/** @param {Move} a @param {Move|null} b */
const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

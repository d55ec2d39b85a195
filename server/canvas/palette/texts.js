// @ts-check
/** The search in the texts of other conversations: after a rest of typing, page by page, until the next one is asked for. */

import { sentence } from "../errors.js";

/** @typedef {{contextId: string, title: string, artifactId: string, name: string, version: number, lines: {line: number, text: string}[]}} FoundText */
/** @typedef {{found: FoundText[], step: "none"|"searching"|"done"|"failed", why: string}} Search */

export const REST_MS = 300;
/** Documents. The server searches texts one after another, so more take longer. */
export const MOST_FOUND = 20;
const NEEDED = 2;

/**
 * @param {{texts: (text: string, pageSize: number, pageToken: string, signal: AbortSignal) => Promise<{found: FoundText[], nextPageToken: string}>}} client
 * @param {(found: FoundText) => boolean} isWanted
 * @param {(search: Search) => void} changed
 */
export function createTextSearch(client, isWanted, changed) {
  let asked = new AbortController();
  let rest = 0;
  return { ask, stop };

  /** @param {string} query */
  function ask(query) {
    stop();
    asked = new AbortController();
    const { signal } = asked;
    const text = query.trim();
    changed({ found: [], step: text.length < NEEDED ? "none" : "searching", why: "" });
    rest = text.length < NEEDED ? 0 : setTimeout(search, REST_MS, text, signal);
  }

  function stop() {
    clearTimeout(rest);
    asked.abort();
  }

  /** @param {string} text @param {AbortSignal} signal */
  async function search(text, signal) {
    /** @type {FoundText[]} */
    let found = [];
    /** @param {Search["step"]} step @param {string} [why] */
    const tell = (step, why = "") => signal.aborted || changed({ found, step, why });
    let token = "";
    try {
      do {
        const page = await client.texts(text, MOST_FOUND, token, signal);
        found = [...found, ...page.found.filter(isWanted)].slice(0, MOST_FOUND);
        token = page.nextPageToken;
        tell(token && found.length < MOST_FOUND ? "searching" : "done");
      } while (token && found.length < MOST_FOUND && !signal.aborted);
    } catch (error) {
      tell("failed", sentence(error));
    }
  }
}

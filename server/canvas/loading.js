// @ts-check
/**
 * Parts of the page that are loaded on demand: each `import()` of the page is one.
 *
 * Rule 1: what could not be loaded is asked for again until it is there: when the browser is online, after a pause, and when
 * the user says so. Nothing stays blank because of one lost moment.
 * Rule 2: the user sees that something is missing, with *Retry*. Some browsers keep a failed import until the page is
 * reloaded: after some attempts online it is *Reload*.
 * Rule 3: a part is loaded once, and all of them when the page is idle, so that later there is nothing left to fail.
 */

import { createBackoff } from "./a2a/retry.js";
import { h } from "./dom.js";
import { TEXT } from "./strings.js";

/**
 * What can be done about a missing part; null when it is there.
 * @typedef {{label: string, run: () => void}} Remedy
 * @typedef {(remedy: Remedy|null) => void} Tell
 */

/** @template T @typedef {{get: (tell?: Tell) => Promise<T>, now: () => T|null}} Part  `get` waits until it is there */

/** After this many attempts online, the page offers a reload. */
const ATTEMPTS = 3;

/** @type {Set<() => Promise<unknown>>} */
const ahead = new Set();
/** @type {Tell} */
let tellUser = () => {};

/** Called about a missing part that was requested without a `tell` of its own. @param {Tell} tell */
export function tellMissing(tell) {
  tellUser = tell;
}

/** Loads all parts, one after the other, as far as that works. */
export async function loadAhead() {
  for (const load of ahead) {
    await load();
  }
}

/** Calls back when the browser has nothing else to do. @param {(deadline?: any) => void} run @returns {any}  for `cancelIdleCallback` */
export const whenIdle = (run) => ("requestIdleCallback" in globalThis ? requestIdleCallback(run) : setTimeout(() => run(), 200));

/**
 * @template T
 * @param {() => Promise<T>} load  an `import()`
 * @param {{early?: boolean}} [options]  `early`: it is loaded when the page is idle, too
 * @returns {Part<T>}
 */
export function partOf(load, { early = true } = {}) {
  /** @type {T|null} */
  let there = null;
  /** @type {Promise<T>|null} */
  let loading = null;
  const failed = (/** @type {unknown} */ error) => {
    loading = null;
    throw error;
  };
  const attempt = () => (loading ??= load().then((part) => (there = part), failed));
  early && ahead.add(attempt);
  return { now: () => there, get: (tell = (remedy) => tellUser(remedy)) => persist(attempt, tell) };
}

/**
 * What a part loads if it has style sheets of its own.
 * @template T
 * @param {Promise<T>} module  an `import()`
 * @param {...URL} sheets
 * @returns {Promise<T>} when all are there
 */
export async function withSheets(module, ...sheets) {
  const links = sheets.map(({ href }) => h("link", { rel: "stylesheet", href }));
  const styled = links.map((link) => new Promise((onload, onerror) => Object.assign(link, { onload, onerror })));
  document.head.append(...links);
  try {
    return (await Promise.all([module, ...styled]))[0];
  } catch (error) {
    links.forEach((link) => link.remove());
    throw error;
  }
}

/** @template T @param {() => Promise<T>} attempt @param {Tell} tell @returns {Promise<T>} */
async function persist(attempt, tell) {
  const backoff = createBackoff();
  for (let failed = false, failures = 0; ; failed = true) {
    try {
      const part = await attempt();
      failed && tell(null);
      return part;
    } catch {
      failures += navigator.onLine ? 1 : 0;
      const again = new AbortController();
      tell(failures < ATTEMPTS ? { label: TEXT.retry, run: () => again.abort() } : { label: TEXT.reload, run: () => location.reload() });
      await backoff.wait(again.signal);
    }
  }
}

/** Runs something once, however often it is asked for until it is done. @param {() => Promise<void>} run */
export function singly(run) {
  /** @type {Promise<void>|null} */
  let running = null;
  return () => (running ??= run().finally(() => (running = null)));
}

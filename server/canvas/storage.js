// @ts-check
/** What the page keeps in the tab, or in the browser, as JSON. Storage may be full, or switched off: then nothing is kept. */

/** @typedef {"sessionStorage"|"localStorage"} Where */

/** The key of what was typed into a document; without an id, what those of its conversation begin with. @param {string|null} contextId @param {string} [artifactId] */
export const typedKey = (contextId, artifactId = "") => `a2a-canvas.typed/${encodeURIComponent(contextId ?? "")}/${encodeURIComponent(artifactId)}`;

/** @param {string} key @param {Where} [where] @returns {any} null if nothing is kept */
export const readStored = (key, where = "sessionStorage") => attempt(() => JSON.parse(globalThis[where].getItem(key) ?? "null")) ?? null;

/** @param {string} key @param {any} value  null takes it away @param {Where} [where] */
export function writeStored(key, value, where = "sessionStorage") {
  attempt(() => (value === null ? globalThis[where].removeItem(key) : globalThis[where].setItem(key, JSON.stringify(value))));
}

/** Whether the tab keeps anything under a key that begins with this. @param {string} prefix */
export const hasStored = (prefix) => attempt(() => Object.keys(sessionStorage).some((key) => key.startsWith(prefix))) ?? false;

/** @template T @param {() => T} run @returns {T|undefined} */
function attempt(run) {
  try {
    return run();
  } catch {
    return undefined;
  }
}

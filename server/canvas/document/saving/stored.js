// @ts-check
/** What was typed and is not saved is kept over a reload, in the storage of the tab. */

const PREFIX = "a2a-canvas.typed/";

/** @param {string} contextId @param {string} artifactId */
const keyOf = (contextId, artifactId) => `${PREFIX}${encodeURIComponent(contextId)}/${encodeURIComponent(artifactId)}`;

/** Whether anything is kept for a conversation. @param {string|null} contextId */
export function hasStored(contextId) {
  const prefix = keyOf(contextId ?? "", "");
  return attempt(() => Object.keys(sessionStorage).some((key) => key.startsWith(prefix))) ?? false;
}

/** @param {string} contextId @param {string} artifactId @returns {any} null if nothing is kept */
export function readStored(contextId, artifactId) {
  return attempt(() => JSON.parse(sessionStorage.getItem(keyOf(contextId, artifactId)) ?? "null")) ?? null;
}

/** @param {string} contextId @param {string} artifactId @param {any} value  null takes it away */
export function writeStored(contextId, artifactId, value) {
  const key = keyOf(contextId, artifactId);
  attempt(() => (value === null ? sessionStorage.removeItem(key) : sessionStorage.setItem(key, JSON.stringify(value))));
}

/** Storage may be full, or switched off. @template T @param {() => T} run @returns {T|undefined} */
function attempt(run) {
  try {
    return run();
  } catch {
    return undefined;
  }
}

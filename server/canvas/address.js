// @ts-check
/** The address of a view: `#/CONTEXT`, `#/CONTEXT/ARTIFACT`, `#/CONTEXT/ARTIFACT/VERSION`, each percent-encoded. Pure. */

/**
 * @typedef {{contextId: string|null, artifactId: string|null, version: number|null}} Place
 */

/**
 * What a fragment names; a malformed one names nothing.
 * @param {string} hash
 * @returns {Place}
 */
export function parsePlace(hash) {
  const [context = "", artifact = "", version = ""] = hash.replace(/^#\/?/, "").split("/");
  try {
    return {
      contextId: decodeURIComponent(context) || null,
      artifactId: decodeURIComponent(artifact) || null,
      version: /^[1-9][0-9]{0,9}$/.test(version) ? Number(version) : null,
    };
  } catch {
    return { contextId: null, artifactId: null, version: null };
  }
}

/** @param {Place} place @returns {string} */
export function formatPlace({ contextId, artifactId, version }) {
  const steps = [contextId, contextId && artifactId, contextId && artifactId && version];
  return `#/${steps.filter(Boolean).map((step) => encodeURIComponent(String(step))).join("/")}`;
}

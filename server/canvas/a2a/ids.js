// @ts-check
/** Ids that nobody else makes. */

/** 128 random bits, as hex. `crypto.randomUUID` is missing on pages that came over plain HTTP from another machine. */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

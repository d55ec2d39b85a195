// @ts-check
/** What of the annotations of each artifact the user has seen: until when they were written. It is kept in the browser. */

import { isDecided, lastWritten } from "../state/annotations.js";
import { readStored, writeStored } from "../storage.js";

/** @param {string|null} contextId @param {string} artifactId */
const seenKey = (contextId, artifactId) => `a2a-canvas.seen/${encodeURIComponent(contextId ?? "")}/${encodeURIComponent(artifactId)}`;

/** How many annotations that nobody has decided have something that the user has not seen. @param {State} state @param {string} artifactId */
export function unreadCount({ contextId, annotations }, artifactId) {
  const until = readStored(seenKey(contextId, artifactId), "localStorage") ?? "";
  return annotations[artifactId]?.items.filter((each) => !isDecided(each) && lastWritten(each) > until).length ?? 0;
}

/** All that is there now has been seen. @param {State} state @param {string} artifactId */
export function markSeen({ contextId, annotations }, artifactId) {
  const newest = (annotations[artifactId]?.items ?? []).map(lastWritten).sort().at(-1);
  newest && writeStored(seenKey(contextId, artifactId), newest, "localStorage");
}

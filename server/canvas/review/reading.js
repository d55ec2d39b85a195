// @ts-check
/**
 * Reads the annotations of the artifact that is shown: when it is shown, when the stream begins again, after an event, and
 * after a new version. The state says when that is (state/annotations.js).
 */

import { isBehind, newsOf } from "../state/annotations.js";
import { shownArtifact } from "../state/reducer.js";

/** What follows within this time is read at once. In milliseconds. */
const REST_MS = 200;

/** @param {App} app */
export function mountReading({ store, client }) {
  let busy = false;
  store.subscribe(look);
  look(store.state);

  /** @param {State} state */
  function look(state) {
    const artifactId = wanted(state);
    if (artifactId !== null && !busy) {
      busy = true;
      setTimeout(read, artifactId in state.annotations ? REST_MS : 0);
    }
  }

  async function read() {
    const { contextId, annotations: known } = store.state;
    const artifactId = wanted(store.state);
    if (contextId !== null && artifactId !== null) {
      const news = newsOf(known, artifactId);
      // What cannot be read now is read after the next event, or when the connection is back.
      const annotations = await client.annotations(contextId, artifactId).catch(() => null);
      store.dispatch({ type: "annotations-read", contextId, artifactId, annotations, news });
    }
    busy = false;
    look(store.state);
  }
}

/** The artifact whose annotations have to be read. @param {State} state */
function wanted(state) {
  const artifact = shownArtifact(state);
  const canBeRead = state.server?.canvas && state.connection === "online" && artifact?.open === false;
  return canBeRead && isBehind(state.annotations, artifact.artifactId) ? artifact.artifactId : null;
}

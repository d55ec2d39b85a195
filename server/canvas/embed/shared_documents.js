// @ts-check
/** The documents of the conversation that a link is for, as they are now and as they change. */

import { RequestFailed } from "../a2a/request_failed.js";
import { createBackoff } from "../a2a/retry.js";
import { createVisibility } from "../a2a/visibility.js";
import { artifactUpdated } from "../state/artifacts.js";
import { recordOf, withEntry } from "../state/records.js";

/**
 * @typedef {object} SharedDocuments
 * @property {"connecting"|"online"|"reconnecting"|"ended"} connection  `ended`: the server does not take the link, and there are no documents
 * @property {Record<string, ArtifactView>} artifacts  by id, in the order in which they came
 * @property {string} lastChanged  the id of the artifact that changed last; "" for none
 */

/** @type {SharedDocuments} */
export const NO_DOCUMENTS = { connection: "connecting", artifacts: recordOf(), lastChanged: "" };
/** What the server answers to a link that has ended, and where the conversation was deleted. */
const ENDED = new Set([401, 404, 410]);

/**
 * Follows them until the link ends; reconnects by itself.
 * @param {import("../a2a/client.js").Client} client  whose requests carry the link
 * @param {(documents: SharedDocuments) => void} show
 * @param {AbortSignal} signal
 */
export async function followDocuments(client, show, signal) {
  const visibility = createVisibility(signal);
  const backoff = createBackoff(() => tell({ connection: "reconnecting" }));
  let documents = NO_DOCUMENTS;
  let contextId = "";
  /** @type {string|null} */
  let last = null;
  const onOpen = () => {
    backoff.reset();
    tell({ connection: "online" });
  };

  /** @param {Partial<SharedDocuments>} change */
  function tell(change) {
    documents = { ...documents, ...change };
    show(documents);
  }

  while (!signal.aborted) {
    const seen = visibility.signal;
    try {
      contextId ||= await contextOfLink(client);
      for await (const { id, event, data } of client.contextEvents(contextId, last, onOpen, seen)) {
        last = id ?? last;
        if (event === "message") {
          const { artifactId } = data.artifactUpdate.artifact;
          const artifact = artifactUpdated(documents.artifacts[artifactId], data.artifactUpdate);
          tell({ artifacts: withEntry(documents.artifacts, artifactId, artifact), lastChanged: artifactId });
        }
      }
    } catch (error) {
      if (error instanceof RequestFailed && ENDED.has(error.code)) {
        return show({ ...NO_DOCUMENTS, connection: "ended" });
      }
    }
    await (seen.aborted ? visibility.whenVisible() : backoff.wait(signal));
  }
}

/** A link is for one conversation: a list without any is that of somebody else. @param {import("../a2a/client.js").Client} client */
async function contextOfLink(client) {
  const { contexts } = await client.contexts("", "");
  if (contexts.length === 0) {
    throw new RequestFailed("", 404);
  }
  return contexts[0].contextId;
}

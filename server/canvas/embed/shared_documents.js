// @ts-check
/**
 * The documents of the conversation that a link is for, as they are now and as they change. What the tasks write into passages
 * comes with the streams of the tasks; it is folded as on the page.
 */

import { RequestFailed } from "../a2a/request_failed.js";
import { createBackoff } from "../a2a/retry.js";
import { createVisibility } from "../a2a/visibility.js";
import { artifactUpdated, editEvent, editsMoved, editsOfOthers, openEdits, textChanges } from "../state/artifacts.js";
import { mergeRecords, recordOf, withEntry } from "../state/records.js";
import { CANVAS } from "../state/task.js";

/**
 * @typedef {object} SharedDocuments
 * @property {"connecting"|"online"|"reconnecting"|"ended"} connection  `ended`: the server does not take the link, and there are no documents
 * @property {Record<string, ArtifactView>} artifacts  by id, in the order in which they came
 * @property {Record<string, Edit>} edits  the passages that are being rewritten
 * @property {string} lastChanged  the id of the artifact that changed last; "" for none
 */

/** @type {SharedDocuments} */
export const NO_DOCUMENTS = { connection: "connecting", artifacts: recordOf(), edits: recordOf(), lastChanged: "" };
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
  /** The tasks that work, and those of them whose streams are read. @type {Set<string>} */
  let working = new Set();
  /** @type {Set<string>} */
  const followed = new Set();
  const onOpen = () => {
    backoff.reset();
    tell({ connection: "online" });
  };

  /** @param {Partial<SharedDocuments>} change */
  function tell(change) {
    documents = { ...documents, ...change };
    show(documents);
  }

  /** @param {Json} update */
  function changed(update) {
    const { artifactId } = update.artifact;
    const before = documents.artifacts[artifactId];
    const artifact = artifactUpdated(before, update);
    const edits = editsMoved(documents.edits, artifact, textChanges(before, artifact, update.append));
    tell({ artifacts: withEntry(documents.artifacts, artifactId, artifact), edits, lastChanged: artifactId });
  }

  /** @param {string} taskId */
  async function followTask(taskId) {
    const pause = createBackoff();
    followed.add(taskId);
    while (!signal.aborted && working.has(taskId)) {
      const seen = visibility.signal;
      try {
        for await (const event of client.subscribe(taskId, seen)) {
          takeEdit(taskId, event);
        }
      } catch {
        // It is over, or the connection is: what the task makes comes with the documents.
      }
      await (seen.aborted ? visibility.whenVisible() : working.has(taskId) && pause.wait(signal));
    }
    followed.delete(taskId);
    tell({ edits: editsOfOthers(documents.edits, taskId, true) });
  }

  /** @param {string} taskId @param {Json} event */
  function takeEdit(taskId, { task, statusUpdate }) {
    const edit = statusUpdate?.metadata?.[CANVAS]?.edit;
    if (task) {
      tell({ edits: mergeRecords(editsOfOthers(documents.edits, taskId, false), openEdits(task, documents.artifacts)) });
    } else if (edit) {
      tell({ edits: editEvent(documents.edits, taskId, edit, documents.artifacts) });
    }
  }

  while (!signal.aborted) {
    const seen = visibility.signal;
    try {
      contextId ||= await contextOfLink(client);
      for await (const { id, event, data } of client.contextEvents(contextId, last, onOpen, seen)) {
        last = id ?? last;
        if (event === "message") {
          changed(data.artifactUpdate);
        } else if (event === "activity") {
          working = new Set(data.working);
          data.working.filter((/** @type {string} */ id) => !followed.has(id)).forEach(followTask);
        }
      }
    } catch (error) {
      if (error instanceof RequestFailed && ENDED.has(error.code)) {
        working.clear();
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

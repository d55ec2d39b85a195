// @ts-check
/** The state of the page: a pure function of the actions. `reduce(state, action)` alters nothing that it is given. */

import { allBehind, annotationsChanged, annotationsMoved, annotationsRead } from "./annotations.js";
import { artifactUpdated, askedEdit, askedKey, editEvent, editsMoved, editsOfOthers, openEdits, textChanges, withoutSuggested } from "./artifacts.js";
import { mergeRecords, recordOf, withEntry, without } from "./records.js";
import { CANVAS, TURN, isRunning, stateOf, statusChanged, taskView, turnEvent } from "./task.js";
import { mapRange, linesOf } from "./text.js";

/** What belongs to the open conversation. */
const NOTHING_OPEN = {
  givenId: null,
  connection: /** @type {const} */ ("none"),
  retryAt: 0,
  watchers: 0,
  presence: null,
  working: [],
  shared: null,
  tasks: recordOf(),
  made: recordOf(),
  artifacts: recordOf(),
  edits: recordOf(),
  annotations: recordOf(),
  annotationId: null,
  outcome: null,
  artifactId: null,
  lastChanged: null,
  version: null,
  old: null,
  selection: null,
};

/** @type {State} */
export const INITIAL = {
  server: null,
  identity: null,
  contexts: [],
  nextPage: "",
  query: "",
  contextId: null,
  losses: 0,
  loaded: false,
  ...NOTHING_OPEN,
  outgoing: recordOf(),
  notices: [],
};

/**
 * @param {State} state
 * @param {Action} action
 * @returns {State}
 */
export function reduce(state, action) {
  // What a stream of another conversation still says is too late.
  if (OF_CONTEXT.has(action.type) && "contextId" in action && action.contextId !== state.contextId) {
    return state;
  }
  switch (action.type) {
    case "server":
      return { ...state, server: action.server };
    case "shared":
      return { ...state, shared: action.shared };
    case "identity":
      return { ...state, identity: action.identity };
    case "contexts":
      return {
        ...state,
        contexts: action.more ? [...state.contexts, ...action.contexts] : action.contexts,
        nextPage: action.nextPage,
        query: action.query,
      };
    case "context-changed":
      return { ...state, contexts: state.contexts.map((each) => (isSame(each, action.context) ? action.context : each)) };
    case "context-removed":
      return {
        ...state,
        contexts: state.contexts.filter((each) => each.contextId !== action.contextId),
        notices: state.notices.filter((each) => each.contextId !== action.contextId),
      };
    case "context-opened":
      return { ...state, ...NOTHING_OPEN, contextId: action.contextId, loaded: action.contextId === null, notices: state.notices.filter(isOfPage) };
    case "context-renamed":
      return contextRenamed(state, action);
    case "tasks":
      return withTasks(withListedArtifacts({ ...state, loaded: true }, action.tasks), action.tasks);
    case "task-event":
      return taskEvent(state, action.stream, action.event);
    case "artifact-event":
      return artifactChanged(state, action.event.artifactUpdate);
    case "versions":
      return { ...state, made: action.versions.reduce(withVersion(action.artifactId), state.made) };
    case "activity":
      return { ...state, watchers: action.watchers, working: action.working };
    case "presence":
      return { ...state, presence: action.roster };
    case "connection":
      return {
        ...state,
        connection: action.connection,
        losses: state.losses + Number(action.connection === "reconnecting" && state.connection !== "reconnecting"),
        retryAt: action.retryAt,
      };
    case "subscribed":
      return { ...state, annotations: allBehind(state.annotations) };
    case "sending":
      return withOutgoing(state, { message: action.message, contextId: action.contextId, error: "" });
    case "not-sent":
      return action.messageId in state.outgoing ? withOutgoing(state, { ...state.outgoing[action.messageId], error: action.error }) : state;
    case "discarded":
      return { ...state, outgoing: without(state.outgoing, action.messageId) };
    case "artifact-shown":
      return { ...state, artifactId: action.artifactId, version: action.version, old: null, selection: null, annotationId: null };
    case "version-read":
      return isShown(state, action.content) ? { ...state, old: action.content } : state;
    case "selected":
      return { ...state, selection: action.selection, outcome: action.selection ? null : state.outcome };
    case "annotations-read":
      return annotationsListed(state, action);
    case "annotations-changed":
      return withAnnotations(state, action.event);
    case "annotation-chosen":
      return { ...state, annotationId: action.annotationId };
    case "rewritten":
      return { ...state, outcome: isPast(state.artifacts, action.outcome ?? undefined) ? null : action.outcome };
    case "notice":
      return isPast(state.artifacts, action.of) ? state : { ...state, notices: [...state.notices, noticeOf(state, action)] };
    case "notice-dismissed":
      return { ...state, notices: state.notices.filter((notice) => notice.id !== action.id) };
    default:
      return /** @type {never} */ (action);
  }
}

const OF_CONTEXT = new Set(["tasks", "versions", "task-event", "artifact-event", "version-read", "activity", "presence", "connection", "subscribed", "annotations-read", "annotations-changed"]);

/** @param {{contextId: string}} a @param {{contextId: string}} b */
const isSame = (a, b) => a.contextId === b.contextId;

/**
 * Whether a notice stays when another conversation is opened. What was done in one is no news in another, and cannot be undone there,
 * unless it names it. What failed in one cannot be tried again in another.
 * @param {State["notices"][number]} notice
 */
const isOfPage = ({ kind, contextId }) => (kind === "error") === (contextId === undefined);

/** @param {State} state @param {Extract<Action, {type: "notice"}>} action */
const noticeOf = (state, { kind, text, action, contextId, of }) => ({ id: nextId(state), kind, text, action, contextId, of });

/** Whether a later version is current. @param {State["artifacts"]} artifacts @param {Notice["of"]} of */
const isPast = (artifacts, of) => of !== undefined && (artifacts[of.artifactId]?.version ?? 0) > of.version;

/**
 * The notices after an artifact has changed, without those of a version that is no longer current. A notice may come before its version.
 * @param {State["notices"]} notices
 * @param {ArtifactView|undefined} before
 * @param {ArtifactView} after
 */
function noticesOfNow(notices, before, after) {
  const isOver = (/** @type {State["notices"][number]} */ { of }) =>
    of?.artifactId === after.artifactId && (after.version > of.version || (before?.version === of.version && after.version < of.version));
  return notices.some(isOver) ? notices.filter((each) => !isOver(each)) : notices;
}

/** @param {State} state */
const nextId = (state) => 1 + Math.max(0, ...state.notices.map((notice) => notice.id));

/** What is on its way, and what is open, is of the context as the server calls it. @param {State} state @param {{from: string, to: string}} action @returns {State} */
function contextRenamed(state, { from, to }) {
  const outgoing = Object.values(state.outgoing).map((each) => (each.contextId === from ? { ...each, contextId: to } : each));
  const open = state.contextId === from ? { contextId: to, givenId: from } : {};
  return { ...state, ...open, outgoing: recordOf(outgoing.map((each) => [each.message.messageId, each])) };
}

/** @param {string} artifactId */
function withVersion(artifactId) {
  return (/** @type {State["made"]} */ made, /** @type {Json} */ { taskId, number }) => withEntry(made, taskId, withEntry(made[taskId], artifactId, number));
}

/**
 * Tasks that were listed, oldest first. A running task that a stream feeds is newer than the list.
 * @param {State} state
 * @param {Json[]} listed
 */
function withTasks(state, listed) {
  const views = listed.map((task) => {
    const known = state.tasks[task.id];
    const view = known && isRunning(known.state) ? known : taskView(task, known?.stream ?? "");
    return known ? { ...view, artifacts: mergeRecords(known.artifacts, view.artifacts) } : view;
  });
  const ids = new Set(views.map((view) => view.taskId));
  const newer = Object.values(state.tasks).filter((view) => !ids.has(view.taskId));
  const tasks = recordOf([...views, ...newer].map((view) => [view.taskId, view]));
  return withoutArrived({ ...state, tasks }, listed);
}

/** A message in the history of a task is no longer on its way. @param {State} state @param {Json[]} tasks */
function withoutArrived(state, tasks) {
  const there = new Set(tasks.flatMap((task) => (task.history ?? []).map((/** @type {any} */ each) => each.messageId)));
  const left = Object.entries(state.outgoing).filter(([id]) => !there.has(id));
  if (left.length === Object.keys(state.outgoing).length) {
    return state;
  }
  const edits = [...there].reduce((before, id) => without(before, askedKey(id)), state.edits);
  return { ...state, edits, outgoing: recordOf(left) };
}

/** @param {State} state @param {Outgoing} outgoing */
function withOutgoing(state, outgoing) {
  const { messageId, metadata } = outgoing.message;
  const edits = without(state.edits, askedKey(messageId));
  const asked = outgoing.error ? undefined : askedEdit(messageId, metadata?.[CANVAS], state.artifacts);
  return { ...state, edits: mergeRecords(edits, asked), outgoing: withEntry(state.outgoing, messageId, outgoing) };
}

/**
 * An event of a task's stream. A task begins a stream, which then is the one that feeds it.
 * @param {State} state
 * @param {string} stream
 * @param {Json} event
 * @returns {State}
 */
function taskEvent(state, stream, event) {
  if (event.task) {
    return taskBegins(state, stream, event.task);
  }
  if (event.artifactUpdate) {
    return taskArtifact(state, stream, event.artifactUpdate);
  }
  const update = event.statusUpdate;
  const view = update && state.tasks[update.taskId];
  if (!view || view.stream !== stream) {
    return state;
  }
  const edit = update.metadata?.[CANVAS]?.edit;
  if (edit) {
    return { ...state, edits: editEvent(state.edits, update.taskId, edit, state.artifacts) };
  }
  const annotated = update.metadata?.[CANVAS]?.annotations;
  if (annotated) {
    return withAnnotations(state, { taskId: update.taskId, ...annotated });
  }
  const turn = update.metadata?.[TURN];
  const next = turn?.event_type
    ? turnEvent(view, turn.event_type, turn.data, `${turn.epoch}/${turn.generation}`)
    : statusChanged(view, update);
  const after = next === view ? state : { ...state, tasks: withEntry(state.tasks, view.taskId, next) };
  const settled = isRunning(next.state) ? after : { ...after, edits: editsOfOthers(after.edits, view.taskId, true) };
  return isRunning(next.state) ? settled : withClosedArtifacts(settled, view.taskId);
}

/** @param {State} state @param {Extract<Action, {type: "annotations-read"}>} action @returns {State} */
function annotationsListed(state, { artifactId, annotations: listed, news }) {
  const annotations = annotationsRead(state.annotations, artifactId, listed, news, state.artifacts[artifactId]?.version);
  return { ...state, annotations, edits: withoutSuggested(state.edits, annotations[artifactId].items) };
}

/** A task tells of them, and the stream of the context does so once more. @param {State} state @param {Json} event @returns {State} */
function withAnnotations(state, event) {
  return { ...state, annotations: annotationsChanged(state.annotations, event) };
}

/** @param {State} state @param {string} stream @param {Json} task @returns {State} */
function taskBegins(state, stream, task) {
  const view = taskView(task, stream);
  const open = openEdits(task, state.artifacts);
  const edits = mergeRecords(
    editsOfOthers(state.edits, task.id, false),
    Object.keys(open).length === 0 && isRunning(view.state) ? askedEdit(task.id, view.operation, state.artifacts) : undefined,
    open,
  );
  const known = state.tasks[task.id]?.artifacts;
  const tasks = withEntry(state.tasks, task.id, { ...view, artifacts: mergeRecords(known, view.artifacts) });
  const next = withoutArrived({ ...state, tasks, edits }, [task]);
  return next.server?.canvas ? next : withArtifacts(next, task);
}

/** Without the event stream of a context, the tasks have the artifacts. @param {State} state @param {Json} task */
function withArtifacts(state, task) {
  const lastChunk = !isRunning(stateOf(task.status.state));
  return (task.artifacts ?? []).reduce(
    (/** @type {State} */ before, /** @type {any} */ artifact) => artifactChanged(before, { taskId: task.id, artifact, lastChunk }),
    state,
  );
}

/** Those of the tasks that have changed since they were listed last, and that no stream feeds. @param {State} state @param {Json[]} tasks */
function withListedArtifacts(state, tasks) {
  const changed = tasks.filter(({ id, status }) => {
    const known = state.tasks[id];
    return !known || (!isRunning(known.state) && known.timestamp !== (status.timestamp ?? ""));
  });
  return state.server?.canvas ? state : changed.reduce(withArtifacts, state);
}

/** An artifact whose task is over is no longer being written, whether its last chunk said so or not. @param {State} state @param {string} taskId */
function withClosedArtifacts(state, taskId) {
  const entries = Object.entries(state.artifacts);
  if (state.server?.canvas || !entries.some(([, artifact]) => artifact.open && artifact.taskId === taskId)) {
    return state;
  }
  return { ...state, artifacts: recordOf(entries.map(([id, artifact]) => [id, artifact.taskId === taskId ? { ...artifact, open: false } : artifact])) };
}

/** @param {State} state @param {string} stream @param {Json} update @returns {State} */
function taskArtifact(state, stream, update) {
  const view = state.tasks[update.taskId];
  if (!view || view.stream !== stream) {
    return state;
  }
  const { artifactId } = update.artifact;
  const version = update.metadata?.[CANVAS]?.artifactVersion ?? 0;
  const next =
    view.artifacts[artifactId] === version
      ? state
      : { ...state, tasks: withEntry(state.tasks, view.taskId, { ...view, artifacts: withEntry(view.artifacts, artifactId, version) }) };
  return state.server?.canvas ? next : artifactChanged(next, update);
}

/**
 * An artifact update: of the event stream of the context, which has every change once, or, if the server has none, of a
 * task. A new artifact is shown while it is written, whatever the user has chosen before.
 * @param {State} state
 * @param {Json} update
 * @returns {State}
 */
function artifactChanged(state, update) {
  const id = update.artifact.artifactId;
  const before = state.artifacts[id];
  const artifact = artifactUpdated(before, update);
  const changes = textChanges(before, artifact, update.append);
  return {
    ...state,
    artifacts: withEntry(state.artifacts, id, artifact),
    made: madeBefore(state.made, before, artifact),
    notices: noticesOfNow(state.notices, before, artifact),
    edits: editsMoved(state.edits, artifact, changes),
    annotations: annotationsMoved(state.annotations, before, artifact, changes),
    outcome: isOver(state.outcome, artifact) ? null : state.outcome,
    selection: selectionMoved(state, artifact, changes),
    lastChanged: id,
    ...(!before && artifact.open ? { artifactId: null, version: null, old: null } : {}),
  };
}

/**
 * An artifact names the task that changed it last: when another one does, what the task before has made is kept.
 * @param {State["made"]} made
 * @param {ArtifactView|undefined} before
 * @param {ArtifactView} after
 */
function madeBefore(made, before, after) {
  const isKept = before && !before.open && before.taskId !== after.taskId;
  return isKept ? withVersion(before.artifactId)(made, { taskId: before.taskId, number: before.version }) : made;
}

/** Whether another version is current than the one that a passage was rewritten in. @param {RewriteOutcome|null} outcome @param {ArtifactView} artifact */
const isOver = (outcome, { artifactId, version }) => outcome?.artifactId === artifactId && outcome.version !== version;

/** @param {State} state @param {ArtifactView} content */
function isShown({ artifactId, version }, content) {
  return content.artifactId === artifactId && content.version === version;
}

/**
 * What is shown of it: the artifact as it is now, or an old version, which is null until it has been read.
 * @param {State} state
 */
export function shownContent(state) {
  return state.version === null ? shownArtifact(state) : state.old;
}

/**
 * The artifact that is shown: the one that the user chose, else the one that changed last; null if there is none.
 * @param {State} state
 */
export function shownArtifact({ artifacts, artifactId, lastChanged }) {
  return artifacts[artifactId ?? ""] ?? artifacts[lastChanged ?? ""] ?? null;
}

/**
 * @param {State} state
 * @param {ArtifactView} artifact
 * @param {readonly import("./text.js").Change[]} changes
 */
function selectionMoved({ selection, version }, artifact, changes) {
  if (!selection || selection.artifactId !== artifact.artifactId || version !== null) {
    return selection;
  }
  const moved = mapRange(selection, changes);
  if (!moved || artifact.text === null) {
    return null;
  }
  const lines = moved === selection ? selection : linesOf(artifact.text, moved.start, moved.end);
  const { lineStart, lineEnd } = lines;
  const others = selection.others?.flatMap((one) => mapRange(one, changes) ?? []);
  return { ...moved, lineStart, lineEnd, version: artifact.version, ...(others && { others }) };
}

/** Whether the user may change what is open. @param {State} state */
export function mayEdit(state) {
  return mayComment(state) && state.shared?.level !== "comment";
}

/** Whether the user may comment on it, and suggest changes. @param {State} state */
export function mayComment({ server, shared }) {
  return server?.canvas !== false && shared?.level !== "read";
}

/** Whether somebody is here by a link, and has no name. @param {State} state */
export function isGuest({ identity }) {
  return identity?.signedIn === true && identity.user === "";
}

/** Whether the server has said who the user is, or asks nobody. @param {State} state */
export function isIdentified({ identity, server }) {
  return identity !== null || (server !== null && Object.keys(server.card.securitySchemes ?? {}).length === 0);
}

// @ts-check
/**
 * Where the user writes. Enter sends, Shift+Enter starts a new line; with a touch screen Enter breaks the line. Ctrl+Enter
 * and Cmd+Enter always send. What cannot be sent yet is sent as soon as it can, unless the user keeps writing. What is
 * not sent is kept per conversation, as long as the tab is open.
 */
import { iconButton } from "../controls.js";
import { fill, h, setText } from "../dom.js";
import { icon } from "../icons.js";
import { filePart } from "../app.js";
import { placeOf, rewritesPassages } from "../passage/actions.js";
import { createRewriting } from "../passage/rewriting.js";
import { mayEdit } from "../state/reducer.js";
import { readStored, writeStored } from "../storage.js";
import { TEXT, say } from "../strings.js";
import { isQuestion, plainName, shorten, size } from "../words.js";
import { ACCEPTED, MOST_BYTES, pendingAttachment } from "./attachments.js";
import { runningTask, waitingTask } from "./entries.js";

const DRAFT = "a2a-canvas.draft.";

/**
 * @param {App} app
 * @returns {{element: HTMLElement, addFiles: (files: File[]) => void, send: (text: string) => void, focus: () => void}}
 */
export function createComposer(app) {
  const { store } = app;
  const { rewrite } = createRewriting(app);
  /** @type {File[]} */
  let files = [];
  let contextId = store.state.contextId;
  /** @type {string|undefined} */
  let asked;
  /** Enter was pressed while nothing could be sent. */
  let pressed = false;
  /** The files of a message are being read. */
  let reading = false;
  /** What is written while this is true goes to the conversation of the address. */
  let opening = isOpening(store.state);

  const field = h("textarea", {
    class: "composer-field",
    id: "message",
    rows: 1,
    dir: "auto",
    "aria-label": TEXT.message,
    "aria-describedby": "message-hint",
    oninput: onInput,
    onkeydown: onKeydown,
    onpaste: onPaste,
  });
  const list = h("ul", { class: "attachments", "aria-label": TEXT.attachments, hidden: true });
  const picker = h("input", { type: "file", multiple: true, accept: ACCEPTED, hidden: true, onchange: () => (addFiles([...picker.files]), (picker.value = "")) });
  const attach = iconButton("attach", TEXT.attachFiles, () => picker.click());
  const hint = h("p", { class: "composer-hint truncate", id: "message-hint" });
  const send = iconButton("send", TEXT.send, null, { type: "submit", class: "composer-send" });
  const stop = iconButton("stop", TEXT.stop, stopTask, { title: TEXT.stopEsc, hidden: true });
  const placeText = h("bdi", { class: "truncate" });
  const place = h("div", { class: "composer-place", hidden: true }, icon("edit", 14), placeText, iconButton("close", TEXT.removePassage, removePassage, { size: 12 }));
  const element = h(
    "form",
    { class: "composer", onsubmit: (/** @type {Event} */ event) => (event.preventDefault(), submit()) },
    h("div", { class: "composer-box" }, place, list, field, h("div", { class: "composer-actions" }, attach, picker, hint, stop, send)),
  );

  field.value = opening ? "" : readDraft(contextId);
  store.subscribe(draw);
  draw(store.state);
  return { element, addFiles, send: (text) => ((field.value = text), submit(), focus()), focus };

  /** A touch screen would show its keyboard. */
  function focus() {
    if (!isTouchScreen()) {
      field.focus();
    }
  }

  /** @param {State} state */
  function draw(state) {
    if (opening && !isOpening(state)) {
      opening = false;
      isEmpty() ? moveTo(state.contextId) : rename(state.contextId);
    } else if (state.contextId !== contextId) {
      contextId !== null && contextId === state.givenId ? rename(state.contextId) : moveTo(state.contextId);
    }
    const waiting = waitingTask(state);
    const reason = obstacle(state);
    element.toggleAttribute("data-disabled", reason !== "");
    field.placeholder = waiting ? TEXT.yourAnswer : state.selection ? TEXT.askAboutPassage : Object.keys(state.tasks).length ? TEXT.askForChange : TEXT.askForDocument;
    hint.textContent = hintOf(state, reason, pressed);
    attach.disabled = reason !== "";
    send.disabled = reason !== "" || isEmpty() || reading;
    stop.hidden = !runningTask(state);
    drawPlace(state);
    if (waiting && waiting.taskId !== asked && mayFocus()) {
      focus();
    }
    asked = waiting?.taskId;
    if (pressed && !reason) {
      queueMicrotask(submit);
    }
  }

  /** The passage that "this" means in the next message. @param {State} state */
  function drawPlace({ selection, artifacts }) {
    place.hidden = !selection;
    if (selection) {
      const { artifactId, text } = selection;
      setText(placeText, say(TEXT.passageOf, { place: placeOf(selection), name: plainName(artifacts[artifactId]?.name ?? artifactId), text: shorten(text, 60) }));
    }
  }

  function removePassage() {
    store.dispatch({ type: "selected", selection: null });
    focus();
  }

  function onInput() {
    pressed = false;
    grow(field);
    opening || keepDraft(contextId, field.value);
    draw(store.state);
  }

  /** @param {KeyboardEvent} event */
  function onKeydown(event) {
    const sends = event.ctrlKey || event.metaKey || (!event.shiftKey && !event.altKey && !isTouchScreen());
    if (event.key === "Enter" && sends && !event.isComposing) {
      event.preventDefault();
      submit();
    }
  }

  function submit() {
    const text = field.value.trim();
    pressed = !isEmpty() && obstacle(store.state) !== "";
    if (isEmpty() || pressed || reading) {
      return draw(store.state);
    }
    if (files.length > 0) {
      sendWithFiles();
      return;
    }
    clear([]);
    const passage = passageToChange(store.state, text);
    if (passage) {
      store.dispatch({ type: "selected", selection: null });
      rewrite(passage, text);
    } else {
      app.send(text);
    }
  }

  /** The message stays in the field until its files are read: it may turn out that they cannot be. */
  async function sendWithFiles() {
    const sent = files;
    const from = store.state.contextId;
    reading = list.inert = send.disabled = true;
    const parts = await Promise.all(sent.map(filePart)).catch(() => null);
    reading = list.inert = false;
    if (!app.isOpen(from)) {
      app.notify("error", TEXT.leftWhileReading);
    } else if (parts) {
      const text = field.value.trim();
      clear(files.filter((file) => !sent.includes(file)));
      app.send(text, parts);
    } else {
      app.notify("error", TEXT.fileNotRead);
    }
    draw(store.state);
  }

  /** @param {File[]} left  the files that are not sent */
  function clear(left) {
    field.value = "";
    setFiles(left);
    keepDraft(contextId, "");
    grow(field);
  }

  function stopTask() {
    const task = runningTask(store.state);
    task && app.cancel(task.taskId);
  }

  /** @param {ClipboardEvent} event */
  function onPaste(event) {
    const found = [...(event.clipboardData?.files ?? [])];
    if (found.length) {
      event.preventDefault();
      addFiles(found);
    }
  }

  /** @param {File[]} added */
  function addFiles(added) {
    const fitting = added.filter((file) => file.size <= MOST_BYTES);
    for (const file of added.filter((each) => each.size > MOST_BYTES)) {
      app.notify("error", say(TEXT.fileTooLarge, { name: plainName(file.name), size: size(file.size), limit: size(MOST_BYTES) }));
    }
    setFiles([...files, ...fitting]);
    field.focus();
  }

  /** @param {File[]} next */
  function setFiles(next) {
    files = next;
    list.hidden = files.length === 0;
    fill(list, files.map((file) => pendingAttachment(file, () => (setFiles(files.filter((each) => each !== file)), field.focus()))));
    send.disabled = isEmpty() || obstacle(store.state) !== "";
  }

  /** A message that begins a conversation gives it its id: the draft goes with it. @param {string|null} next */
  function moveTo(next) {
    pressed = false;
    contextId = next;
    field.value = readDraft(contextId);
    setFiles([]);
    grow(field);
  }

  /** The conversation gets its id, from the server or as it is opened: what is not sent yet stays. @param {string|null} next */
  function rename(next) {
    contextId && keepDraft(contextId, "");
    contextId = next;
    keepDraft(contextId, field.value);
  }

  function isEmpty() {
    return field.value.trim() === "" && files.length === 0;
  }

  /** The focus is not taken from somebody who writes elsewhere. */
  function mayFocus() {
    const active = document.activeElement;
    return !active || active === document.body || element.closest(".chat")?.contains(active);
  }
}

/**
 * The passage that a message is to change: the one that is selected, unless the message asks something or
 * answers the agent, or the server rewrites no passages.
 * @param {State} state
 * @param {string} text
 */
function passageToChange(state, text) {
  const { selection, artifacts, server, version } = state;
  const isFree = selection !== null && version === null && !artifacts[selection.artifactId]?.open && !waitingTask(state);
  return isFree && mayEdit(state) && rewritesPassages(server?.card) && !isQuestion(text) ? selection : null;
}

/** The page does not show the conversation of its address yet. @param {State} state */
const isOpening = ({ contextId, loaded }) => contextId === null && !loaded;

/** Why nothing can be sent now; "" if it can. @param {State} state */
function obstacle(state) {
  const { connection, server } = state;
  if (!server) {
    return TEXT.waitingForServer;
  }
  if (isOpening(state)) {
    return TEXT.conversationOpening;
  }
  return connection === "reconnecting" ? TEXT.sendOnceConnected : "";
}

/** @param {State} state @param {string} reason  why nothing can be sent @param {boolean} pressed */
function hintOf(state, reason, pressed) {
  if (reason) {
    return pressed ? say(TEXT.sentThen, { reason }) : reason;
  }
  if (isTouchScreen()) {
    return "";
  }
  return runningTask(state) ? TEXT.escStops : TEXT.enterSends;
}

const isTouchScreen = () => matchMedia("(pointer: coarse)").matches;

/** For browsers without `field-sizing`. @param {HTMLTextAreaElement} field */
function grow(field) {
  if (!CSS.supports("field-sizing", "content")) {
    field.style.height = "auto";
    field.style.height = `${field.scrollHeight}px`;
  }
}

/** @param {string|null} contextId @returns {string} */
const readDraft = (contextId) => readStored(DRAFT + (contextId ?? "")) ?? "";

/** @param {string|null} contextId @param {string} text */
const keepDraft = (contextId, text) => writeStored(DRAFT + (contextId ?? ""), text || null);

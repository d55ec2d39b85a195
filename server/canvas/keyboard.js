// @ts-check
/** The keys of the page. */

/**
 * What a key means where it was pressed; null for nothing. Pure.
 * @param {{key: string, ctrlKey: boolean, metaKey: boolean, shiftKey: boolean, altKey: boolean}} event
 * @param {"text"|"editor"|"elsewhere"} where  `editor` is the source of the document
 * @returns {"focus"|"stop"|"undo"|"redo"|"save"|"help"|"find"|"next"|"previous"|"accept"|"reject"|null}
 */
export function meaningOf({ key, ctrlKey, metaKey, shiftKey, altKey }, where) {
  const modified = ctrlKey || metaKey;
  if (modified && !altKey && !shiftKey && key === "k") {
    return "find";
  }
  if (modified && !altKey && where !== "text") {
    const lower = key.toLowerCase();
    if (lower === "z") {
      return shiftKey ? "redo" : "undo";
    }
    if (lower === "s" && !shiftKey) {
      return "save";
    }
    return lower === "y" && !shiftKey ? "redo" : null;
  }
  if (modified || altKey) {
    return null;
  }
  if (key === "Escape") {
    return "stop";
  }
  if (where !== "elsewhere") {
    return null;
  }
  if (key === "/") {
    return "focus";
  }
  if (key === "?") {
    return "help";
  }
  if (key === "]") {
    return "next";
  }
  if (key === "[") {
    return "previous";
  }
  if (key === "a") {
    return "accept";
  }
  return key === "r" ? "reject" : null;
}

/**
 * Listens to the keys of the whole page. What another listener has taken (`preventDefault`, `stopPropagation`) is not taken
 * again: the editor undoes what was typed in it before the document goes back a version.
 * @param {Record<"focus"|"stop"|"undo"|"redo"|"save"|"help"|"find"|"next"|"previous"|"accept"|"reject", () => void>} actions
 */
export function mountKeyboard(actions) {
  document.addEventListener("keydown", (event) => {
    const meaning = event.defaultPrevented || document.querySelector("dialog[open]") ? null : meaningOf(event, placeOf(event.target));
    if (meaning) {
      event.preventDefault();
      actions[meaning]();
    }
  });
}

/** @param {EventTarget|null} target @returns {"text"|"editor"|"elsewhere"} */
function placeOf(target) {
  const element = target instanceof Element ? target : null;
  if (element?.closest(".cm-editor")) {
    return "editor";
  }
  return element?.closest("input:not([type=range]), textarea, select, [contenteditable]") ? "text" : "elsewhere";
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { readFileSync, readdirSync } from "node:fs";
import { meaningOf } from "../../../server/canvas/keyboard.js";
import { KEYS } from "../../../server/canvas/keys_dialog.js";

const key = (name, modifiers = {}) => ({ key: name, ctrlKey: false, metaKey: false, shiftKey: false, altKey: false, ...modifiers });

test("a field keeps its own keys", () => {
  for (const event of [key("/"), key("?"), key("z", { ctrlKey: true }), key("a")]) {
    assert.equal(meaningOf(event, "text"), null);
  }
  assert.equal(meaningOf(key("Escape"), "text"), "stop");
});

test("undo and redo are those of the document, in its source as well", () => {
  for (const where of ["editor", "elsewhere"]) {
    assert.equal(meaningOf(key("z", { metaKey: true }), where), "undo");
    assert.equal(meaningOf(key("Z", { ctrlKey: true, shiftKey: true }), where), "redo");
    assert.equal(meaningOf(key("y", { ctrlKey: true }), where), "redo");
  }
});

test("characters are commands only where nobody types", () => {
  assert.deepEqual(["/", "?"].map((name) => meaningOf(key(name), "editor")), [null, null]);
  assert.deepEqual(["/", "?"].map((name) => meaningOf(key(name), "elsewhere")), ["focus", "help"]);
  assert.equal(meaningOf(key("/", { altKey: true }), "elsewhere"), null);
});

test("suggestions are gone through with single characters, which a field keeps", () => {
  const meant = (where) => ["]", "[", "a", "r"].map((name) => meaningOf(key(name), where));
  assert.deepEqual(meant("elsewhere"), ["next", "previous", "accept", "reject"]);
  assert.deepEqual([...meant("text"), ...meant("editor")], Array(8).fill(null));
});

test("what was typed is saved at once in the document, and no page of the browser", () => {
  assert.deepEqual(["editor", "elsewhere"].map((where) => meaningOf(key("s", { ctrlKey: true }), where)), ["save", "save"]);
  assert.equal(meaningOf(key("s", { ctrlKey: true }), "text"), null);
});

test("the palette opens wherever the focus is", () => {
  for (const where of ["text", "editor", "elsewhere"]) {
    assert.deepEqual([{ ctrlKey: true }, { metaKey: true }].map((held) => meaningOf(key("k", held), where)), ["find", "find"]);
    assert.equal(meaningOf(key("K", { ctrlKey: true, shiftKey: true }), where), null);
  }
});

// ---------------------------------------------------------------------------------------------- the list and the handlers

const CANVAS = new URL("../../../server/canvas/", import.meta.url);
const SOURCES = readdirSync(CANVAS, { recursive: true })
  .filter((path) => path.endsWith(".js") && !path.startsWith("vendor"))
  .map((path) => readFileSync(new URL(path, CANVAS), "utf8"));

/** What the list calls a key that events call otherwise. */
const CALLED = { " ": "Space", Escape: "Esc", ArrowUp: "↑", ArrowDown: "↓", ArrowLeft: "←", ArrowRight: "→" };
const LETTERS = ["z", "y", "s", "f", "a", "k", "r"];

/** The keys that modules compare with, or have in a table of keys. */
function listenedTo() {
  const compared = SOURCES.flatMap((source) => [...source.matchAll(/(?:\bkey|\blower) === "([^"]+)"/g)]);
  const tables = SOURCES.flatMap((source) => [...source.matchAll(/\b(Arrow(?:Up|Down|Left|Right)|Home|End|F2|Delete): /g)]);
  const search = SOURCES.some((source) => source.includes("...searchKeymap")) ? ["f"] : [];
  const names = [...compared, ...tables].map(([, name]) => CALLED[name] ?? name);
  return new Set([...names.map((name) => (LETTERS.includes(name) ? name.toUpperCase() : name)), ...search.map((name) => name.toUpperCase())]);
}

/** The keys of the list, without those that are held with them. */
function listed() {
  const words = KEYS.flatMap(([keys, what]) => [...keys.split(" "), ...(what.match(/(?:Ctrl|⌘|Shift)\+\w+/g) ?? [])]);
  return new Set(words.map((word) => word.split("+").at(-1)));
}

test("the list names every key that something listens to, and no other", () => {
  assert.deepEqual([...listed()].sort(), [...listenedTo()].sort());
});

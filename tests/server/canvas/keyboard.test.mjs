import assert from "node:assert/strict";
import { test } from "node:test";
import { meaningOf } from "../../../server/canvas/keyboard.js";

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

import assert from "node:assert/strict";
import { test } from "node:test";
import { FOLLOW, NOTHING, TEXT_OF, callEnded, changeArrived, inputArrived, isMarkdown, passageMessage } from "../../../../server/canvas/host/shown_document.js";

const WHERE = "7c8d/tide%20pools.md";
const RESULT = { structuredContent: { id: WHERE, url: "https://a.example/#/x", version: 3 }, _meta: { [FOLLOW]: "https://a.example/events" } };

test("the document grows piece by piece while its text arrives", () => {
  let shown = NOTHING;
  for (const text of ["O", "One", "One two"]) {
    shown = inputArrived(shown, { name: "tide.md", text });
    assert.deepEqual([shown.artifact.text, shown.writing, shown.artifact.open], [text, true, true]);
  }
  shown = callEnded(shown, RESULT);
  assert.deepEqual([shown.id, shown.artifact.text, shown.artifact.version, shown.writing], [WHERE, "One two", 3, false]);
});

test("of the input of another call only the document that it is about is known", () => {
  for (const input of [undefined, {}, { id: WHERE, old: "One", new: "1" }, { name: "a" }, { text: "b" }]) {
    const shown = inputArrived(NOTHING, input);
    assert.deepEqual([shown.id, shown.artifact, shown.writing], [input?.id ?? "", null, true]);
  }
});

test("a document that is read is shown as it is read", () => {
  const shown = callEnded(NOTHING, { structuredContent: { id: WHERE, version: 2, name: "tide pools.md" }, _meta: { [TEXT_OF]: "Two" } });
  assert.deepEqual([shown.artifact.name, shown.artifact.text, shown.artifact.version], ["tide pools.md", "Two", 2]);
});

test("a refused call says why and takes nothing away", () => {
  const before = inputArrived(NOTHING, { name: "tide.md", text: "One" });
  const shown = callEnded(before, { isError: true, content: [{ type: "text", text: "It is being written." }] });
  assert.deepEqual([shown.error, shown.artifact, shown.writing], ["It is being written.", before.artifact, false]);
  assert.equal(callEnded(shown, RESULT).error, "");
});

test("changes of this document are folded, and those of others are not", () => {
  const shown = callEnded(inputArrived(NOTHING, { name: "tide.md", text: "One" }), RESULT);
  const update = (artifactId, text, append) => ({ artifact: { artifactId, parts: [{ text }] }, append, lastChunk: false });
  assert.equal(changeArrived(shown, update("other", "Two", false)), shown);
  const replaced = changeArrived(shown, update("tide pools.md", "Two", false));
  assert.equal(changeArrived(replaced, update("tide pools.md", " three", true)).artifact.text, "Two three");
});

test("a text is rendered if it is Markdown, or says nothing of what it is", () => {
  const is = (name, mediaType = "") => isMarkdown({ name, mediaType });
  assert.deepEqual([is("a.md"), is("notes"), is("a.py", "text/markdown"), is("a.py"), is("notes", "text/plain")], [true, true, true, false, false]);
});

test("what is asked for a passage names where it is", () => {
  const shown = callEnded(inputArrived(NOTHING, { name: "tide.md", text: "One" }), RESULT);
  assert.equal(passageMessage(shown, "One", "Shorter"), `Shorter\n\nThis is about a passage of ${WHERE}, version 3:\n\nOne`);
});

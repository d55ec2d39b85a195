import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, choicesOf, formatCount, isQuestion, operationWords, passageWords, period, plainName, shorten, size, wellFormed, withoutChoices } from "../../../server/canvas/words.js";

test("things are counted", () => {
  assert.equal(formatCount(1, "document"), "1 document");
  assert.equal(formatCount(2, "person is", "people are"), "2 people are");
});

test("a text is shortened to one line, and no character is cut in two", () => {
  assert.equal(shorten(" one\n two ", 20), "one two");
  assert.equal(shorten("one two", 3), "one…");
  assert.equal(shorten("a😀b", 2), "a…");
});

test("half of a surrogate pair is replaced in every text of what is sent", () => {
  const sent = wellFormed({ parts: [{ text: "a\ud83d😀" }, { raw: "AA==" }], metadata: { op: "put", text: "\ude00", merge: true, base: null, version: 1 } });
  assert.deepEqual(sent, { parts: [{ text: "a\ufffd😀" }, { raw: "AA==" }], metadata: { op: "put", text: "\ufffd", merge: true, base: null, version: 1 } });
  assert.equal(wellFormed(null), null);
});

test("an operation is told in words", () => {
  const selection = { lineStart: 3, lineEnd: 4 };
  assert.deepEqual(operationWords({ op: "edit", artifactId: "a", selection }, "a.md", "make it shorter"), {
    what: "Edit of lines 3–4",
    detail: "make it shorter",
  });
  assert.equal(operationWords({ op: "restore", artifactId: "a", version: 2 }, "a.md", "").what, "Back to version 2 of a.md");
  assert.equal(operationWords({ op: "put", artifactId: "a", name: "a.md" }, "a.md", "").what, "You added a.md");
  assert.equal(operationWords({ op: "edit", artifactId: "a" }, "a.md", "x").what, "Edit of a.md");
});

test("a passage is named by its lines, or by what it says", () => {
  assert.equal(passageWords({ lineStart: 3 }), "line 3");
  assert.equal(passageWords({ start: 0, end: 5, text: "The\nsea" }), "“The sea”");
  assert.equal(passageWords({ start: 4, end: 4, text: "" }), "");
  assert.equal(passageWords(undefined), "");
});

test("times are short", () => {
  const now = Date.parse("2026-03-10T12:00:00Z");
  const at = (seconds, locales = ["en"]) => ago(new Date(now - seconds * 1000).toISOString(), now, locales);
  assert.deepEqual([5, 90, 7200, 2 * 86400].map((seconds) => at(seconds)), ["now", "1 min", "2 h", "2 d"]);
  assert.equal(at(20 * 86400), "Feb 18");
  assert.equal(at(20 * 86400, ["de"]), "18. Feb.");
  assert.equal(ago("", now), "");
});

test("the list has a part for each period", () => {
  const now = new Date(2026, 2, 10, 12).getTime();
  const on = (day) => period(new Date(2026, 2, day, 11).toISOString(), now);
  assert.deepEqual([10, 9, 5, 1].map(on), ["Today", "Yesterday", "Last 7 days", "Earlier"]);
});

test("sizes", () => assert.deepEqual([1, 999, 1500, 153_200, 999_600, 2_345_678, 20_000_000, 3e9].map((bytes) => size(bytes, ["en"])), ["1 byte", "999 bytes", "1.5 KB", "153 KB", "1 MB", "2.3 MB", "20 MB", "3 GB"]));

test("numbers are written as the user writes them", () => {
  assert.equal(size(2_345_678, ["de"]), "2,3 MB");
  assert.equal(formatCount(12_000, "word", "words", ["en"]), "12,000 words");
  assert.equal(formatCount(12_000, "word", "words", ["de"]), "12.000 words");
});

test("a question offers the answers that it names", () => {
  assert.deepEqual(choicesOf("Which one?\n\n- **tea.md**\n- `rain.md`"), ["tea.md", "rain.md"]);
  assert.deepEqual(choicesOf("Which one?\n1. The first\n2. The second"), ["The first", "The second"]);
  assert.deepEqual(choicesOf("Which document do you mean: “tea.md”, “rain.md” or “fog.md”?"), ["tea.md", "rain.md", "fog.md"]);
  assert.deepEqual(choicesOf("Shall I go on (yes/no)?"), ["Yes", "No"]);
});

test("a question without answers offers none", () => {
  assert.deepEqual(choicesOf("What is your name?"), []);
  assert.deepEqual(choicesOf("Is it about cats or dogs?"), []);
  assert.deepEqual(choicesOf(`- one\n- ${"long ".repeat(20)}`), []);
});

test("what is offered as buttons is not read twice", () => {
  assert.equal(withoutChoices("Which one?\n\n- **tea.md**\n- `rain.md`\n"), "Which one?");
  assert.equal(withoutChoices("Which one?\n1. The first\n2. The second\n\nTake your time."), "Which one?\n\nTake your time.");
});

test("a list that is no choice, or all of the question, stays", () => {
  for (const text of ["What is your name?", `About:\n- one\n- ${"long ".repeat(20)}`, "- tea\n- rain", "Do you want tea or rain?"]) {
    assert.equal(withoutChoices(text), text);
  }
});

test("an answer has no marks of Markdown", () => {
  assert.deepEqual(choicesOf("Which?\n- **Tea**, the green one\n- `rain`"), ["Tea, the green one", "rain"]);
});

test("a question is distinguished from a request for a change", () => {
  for (const asked of ["What is this?", "why is it so long", "Explain this passage", "Really？"]) {
    assert.equal(isQuestion(asked), true, asked);
  }
  for (const change of ["make it shorter", "Translate it to French.", "whatever comes first, say it twice"]) {
    assert.equal(isQuestion(change), false, change);
  }
});

test("a name cannot turn the words around it", () => assert.equal(plainName("a\u202egnp.exe\u2066"), "agnp.exe"));

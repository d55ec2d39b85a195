import assert from "node:assert/strict";
import { test } from "node:test";
import { findEntries, findLines, findPlace, MOST, versionIn } from "../../../../server/canvas/palette/find.js";

const entries = (...texts) => texts.map((text) => ({ kind: "document", text, run: () => {} }));
const found = (query, ...texts) => findEntries(query, entries(...texts)).map(({ text }) => text);

test("what begins with the query is first, then what has a word that does", () => {
  assert.deepEqual(found("ti", "Antics", "The tide", "Tide pools"), ["Tide pools", "The tide", "Antics"]);
});

test("every word has to be there, in either case and order", () => {
  assert.deepEqual(found("POOLS tide", "Tide pools", "Tide", "Pools"), ["Tide pools"]);
});

test("a detail is searched, too", () => {
  assert.equal(findEntries("reef", [{ kind: "conversation", text: "Notes", detail: "reef.md", run: () => {} }]).length, 1);
});

test("without a query everything is there, up to a number", () => {
  assert.equal(found("", ...Array.from({ length: 100 }, (_, at) => `n${at}`)).length, MOST);
});

test("lines that contain the query have their numbers and the place where it is first, each once", () => {
  const text = "One tide\nno\n  two tide, tide\nTIDE";
  assert.deepEqual(findLines("tide", text), [
    { line: 1, text: "One tide", start: 4, end: 8 },
    { line: 3, text: "two tide, tide", start: 18, end: 22 },
    { line: 4, text: "TIDE", start: 29, end: 33 },
  ]);
  assert.equal(findLines("tide", "İİ tide")[0].start, 3);
  assert.deepEqual(findLines("t", text), []);
});

test("a version is named by its number", () => {
  assert.deepEqual(["12", "v12", "Version 12", "12a", "", "0"].map(versionIn), [12, 12, 12, null, null, 0]);
});

const placed = (query, text, line) => {
  const place = findPlace(query, text, line);
  return place && text.slice(place.start, place.end);
};

test("a line that was found is found again at the first of the words", () => {
  assert.deepEqual(findPlace("pools TIDE", "One tide\nThe tide pools\ntide pools", 2), { start: 13, end: 17 });
});

test("in a text that has changed it is the first line that has the words", () => {
  assert.deepEqual(findPlace("tide", "New\nThe tide", 1), { start: 8, end: 12 });
});

test("where this page finds no word, the line is the place, if there is one", () => {
  assert.equal(placed("strasse", "One\nStraße\nTwo", 2), "Straße");
  assert.equal(placed("strasse", "One", 2), null);
});

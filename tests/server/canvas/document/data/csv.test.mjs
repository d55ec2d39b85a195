/** Separated values: what the cells say, and that an edit of one changes nothing else. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { cellChange, cellSource, cellText, delimiterOf, forSpreadsheet, isFormula, parseCsv } from "../../../../../server/canvas/document/data/csv.js";

const DELIMITERS = [",", ";", "\t", "|"];
const PIECES = ["", "a", "tide", "0.4", " ", '"', '""', ",", ";", "\t", "|", "\n", "\r\n", "\r", "é", "🦀", "\uFEFF", "=1+1", "'", "x"];

/** The same numbers each time. @param {number} seed */
function random(seed) {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * below);
  };
}

const valuesOf = (text, delimiter) => {
  const { rows, broken } = parseCsv(text, delimiter);
  assert.equal(broken, null, JSON.stringify(text));
  return rows.map((row) => Array.from({ length: row.length / 2 }, (_, column) => cellText(text, row, column)));
};

/** A table, as values and as one of the texts that say them. @param {(below: number) => number} below */
function sample(below) {
  const delimiter = DELIMITERS[below(4)];
  const value = () => Array.from({ length: below(4) }, () => PIECES[below(PIECES.length)]).join("");
  const values = Array.from({ length: 1 + below(5) }, () => Array.from({ length: 1 + below(4) }, value));
  const ends = ["\n", "\r\n", "\r"][below(3)];
  const isEmpty = (row) => row.length === 1 && row[0] === "";
  const lines = values.map((row) => row.map((cell) => cellSource(cell, delimiter, below(3) === 0 || isEmpty(row))).join(delimiter));
  const text = (below(5) ? "" : "\uFEFF") + lines.join(ends) + (below(2) ? ends : "");
  return { delimiter, values, text };
}

test("what is written is read, with any quotes and line ends", () => {
  const below = random(1);
  for (let nth = 0; nth < 2000; nth++) {
    const { delimiter, values, text } = sample(below);
    assert.deepEqual(valuesOf(text, delimiter), values, JSON.stringify(text));
  }
});

test("an edit of a cell changes the text at its place alone, and the table in that cell alone", () => {
  const below = random(2);
  for (let nth = 0; nth < 2000; nth++) {
    const { delimiter, values, text } = sample(below);
    const at = below(values.length);
    const column = below(values[at].length);
    const value = PIECES[below(PIECES.length)] + PIECES[below(PIECES.length)];
    const row = parseCsv(text, delimiter).rows[at];
    const { start, end, text: replacement } = cellChange(text, delimiter, row, column, value);
    assert.deepEqual([start, end], row.slice(2 * column, 2 * column + 2));
    const next = text.slice(0, start) + replacement + text.slice(end);
    const expected = values.map((each, nth) => (nth === at ? each.with(column, value) : each));
    assert.deepEqual(valuesOf(next, delimiter), expected, JSON.stringify([text, next]));
  }
});

test("an edit that gives a cell the value it has leaves the text as it is, quotes included", () => {
  const text = 'name,note\r\n"crab","says ""hi"""\r\nstar,';
  for (const row of parseCsv(text, ",").rows) {
    for (const column of [0, 1]) {
      const { start, end, text: same } = cellChange(text, ",", row, column, cellText(text, row, column));
      assert.equal(same, text.slice(start, end));
    }
  }
});

for (const [text, why] of [
  ['a,b\n1,"open\n2,3', "a quote that begins in line 2 is not closed"],
  ['a,b\r\n"x"y,2', "in line 2, text follows a closing quote"],
]) {
  test(`${JSON.stringify(text)} is no table: ${why}`, () => assert.deepEqual(parseCsv(text, ","), { rows: null, broken: why }));
}

test("rows may have different lengths, and a quote within a word is a character", () => {
  assert.deepEqual(valuesOf('a,b,c\n5" disk\n\n1,2\n', ","), [["a", "b", "c"], ['5" disk'], [""], ["1", "2"]]);
});

for (const [text, isTabbed, delimiter] of [
  ["a,b;c,d", false, ","],
  ['"a,b";c;d\n1,2,3,4,5', false, ";"],
  ["a\tb", false, "\t"],
  ["a,b", true, "\t"],
  ["alone", false, ","],
]) {
  test(`${JSON.stringify(text)} is separated by ${JSON.stringify(delimiter)}`, () => assert.equal(delimiterOf(text, isTabbed), delimiter));
}

test("a spreadsheet runs no cell, and reads plain numbers as numbers", () => {
  const dangerous = ["=1+1", "+1+1", "-2+3", "@sum(a1)", "\tx", "\r=1", "=cmd|' /C calc'!A0", "-", "+a"];
  const plain = ["-5", "+5", "-0.4", "-1,5", "1e5", "-2%", "a=b", " =1", "", "'=1"];
  assert.deepEqual(dangerous.filter((value) => !isFormula(value)), []);
  assert.deepEqual(plain.filter(isFormula), []);
  const written = forSpreadsheet([[...dangerous], [...plain]], ",");
  assert.deepEqual(valuesOf(written, ","), [dangerous.map((value) => `'${value}`), plain]);
});

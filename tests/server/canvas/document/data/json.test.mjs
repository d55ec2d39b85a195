/** The places of values in a JSON text: what is there reads as the value, whatever surrounds it. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { placeOf, readScalar } from "../../../../../server/canvas/document/data/json.js";

const TEXT = `\t{ "a" : [ 1.0e3, {"b\\"": "x]}\\\\" , "c,": null} ,[] ], "a\\u0062":true,
  "same": 1, "same": "2", "__proto__": {"é🦀": -0}}\r\n`;

const at = (text, ...path) => {
  const { start, end } = placeOf(text, path);
  return text.slice(start, end);
};

/** All paths of a value to what has no members. */
function* pathsOf(value, path = []) {
  if (typeof value !== "object" || value === null) {
    yield [path, value];
    return;
  }
  for (const [name, member] of Object.entries(value)) {
    yield* pathsOf(member, [...path, name]);
  }
}

test("the source of each value is its own", () => {
  assert.equal(at(TEXT, "a", "0"), "1.0e3");
  assert.equal(at(TEXT, "a", "1", 'b"'), '"x]}\\\\"');
  assert.equal(at(TEXT, "a", "1", "c,"), "null");
  assert.equal(at(TEXT, "a", "2"), "[]");
  assert.equal(at(TEXT, "ab"), "true");
  assert.equal(at(TEXT, "same"), '"2"');
  assert.equal(at(TEXT, "__proto__", "é🦀"), "-0");
  assert.equal(at(" 7 "), "7");
});

test("a value that is replaced in its place is the only one that changes", () => {
  for (const indent of [undefined, 2, "\t"]) {
    const text = JSON.stringify(JSON.parse(TEXT), null, indent);
    for (const [path, value] of pathsOf(JSON.parse(text))) {
      const { start, end } = placeOf(text, path);
      assert.deepEqual(JSON.parse(text.slice(start, end)), value);
      const changed = JSON.parse(`${text.slice(0, start)}"new"${text.slice(end)}`);
      const others = (data) => [...pathsOf(data)].filter(([each]) => JSON.stringify(each) !== JSON.stringify(path));
      assert.deepEqual(others(changed), others(JSON.parse(text)));
      assert.equal(path.reduce((data, step) => data[step], changed), "new");
    }
  }
});

test("a value without members is what the user may write", () => {
  for (const source of ['"a"', "-1.5e3", "true", "false", "null"]) {
    assert.deepEqual(readScalar(source), { value: JSON.parse(source) });
  }
  for (const source of ["", "a", "[]", '{"a": 1}', "01", '"a', "1 2", "NaN"]) {
    assert.equal(readScalar(source), null, source);
  }
});

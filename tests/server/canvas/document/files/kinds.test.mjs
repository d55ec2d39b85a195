/** How an artifact is shown, in which language, under which file name. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { fileName, kindOf, langOf } from "../../../../../server/canvas/document/files/kinds.js";

for (const [name, mediaType, kind, language] of [
  ["report.md", "text/markdown", "markdown", "markdown"],
  ["report", "", "markdown", "markdown"],
  ["report", "text/plain", "markdown", "markdown"],
  ["notes.txt", "text/plain", "text", ""],
  ["tool.py", "text/plain", "code", "python"],
  ["tool", "text/x-python", "code", "python"],
  ["app.tsx", "", "code", "tsx"],
  ["page.html", "text/html", "html", "html"],
  ["logo.svg", "image/svg+xml", "svg", "xml"],
  ["plan.mmd", "text/plain", "diagram", ""],
  ["plan", "text/vnd.mermaid", "diagram", ""],
  ["data.json", "application/json", "json", "json"],
  ["data", "application/json", "json", "json"],
  ["Dockerfile", "", "code", "dockerfile"],
  ["table.csv", "text/csv", "table", ""],
  ["table.TSV", "", "table", ""],
  ["table", "text/tab-separated-values; charset=utf-8", "table", ""],
]) {
  test(`${name} of ${mediaType || "no type"} is ${kind}`, () => {
    const found = kindOf({ name, mediaType, text: "" });
    assert.deepEqual([found.name, found.name === "markdown" ? "markdown" : found.language], [kind, language]);
  });
}

test("an artifact without text is its parts", () => assert.equal(kindOf({ name: "a.md", mediaType: "", text: null }).name, "parts"));

for (const [name, expected] of [
  ["report.md", "report.md"],
  ["report", "report.md"],
  ["../../etc/passwd", "..-..-etc-passwd.md"],
  ["", "document.md"],
]) {
  test(`${JSON.stringify(name)} is saved as ${expected}`, () => {
    assert.equal(fileName({ name }, kindOf({ name, mediaType: "", text: "" })), expected);
  });
}

for (const [text, lang] of [
  ["---\ntitle: Gezeiten\nlang: de\n---\n\n# Gezeiten\n", "de"],
  ["---\r\nlang: 'pt-BR' # of Brazil\r\n---\r\nMar\r\n", "pt-BR"],
  ["---\nlang: de\n...\n", "de"],
  ["---\nlang: <b>\n---\n", ""],
  ["---\nslang: de\n---\n", ""],
  ["lang: de\n", ""],
  ["# Tides\n\n---\nlang: de\n---\n", ""],
  ["---\nlang: de\n", ""],
  ["", ""],
]) {
  test(`the language of ${JSON.stringify(text)} is ${lang || "unknown"}`, () => assert.equal(langOf(text), lang));
}

/** What a string may become. */

import assert from "node:assert/strict";
import { test } from "node:test";
import "../page.mjs";

const { sanitize } = await import("../../../../../server/canvas/document/markdown/sanitize.js");

/** @param {string} text */
function html(text) {
  const holder = document.createElement("div");
  holder.append(sanitize(text));
  return holder.innerHTML;
}

for (const [given, expected] of [
  ["<script>x()</script>text", "text"],
  ['<b onclick="x()">b</b>', "<b>b</b>"],
  ['<strong onclick="x()" style="position:fixed" id="app" class="button">b</strong>', "<strong>b</strong>"],
  ['<a href="javascript:x()">a</a>', "<a>a</a>"],
  ['<a href="/artifacts">a</a>', "<a>a</a>"],
  ['<a href="https://x.y" target="_top">a</a>', '<a href="https://x.y" rel="noopener noreferrer" target="_blank">a</a>'],
  ['<a href="mailto:a@b.c">a</a>', '<a href="mailto:a@b.c" rel="noopener noreferrer" target="_blank">a</a>'],
  [
    '<img src="https://x.y/p.png" alt="a pool">',
    '<a class="document-image-link" href="https://x.y/p.png" rel="noopener noreferrer" target="_blank">a pool</a>',
  ],
  ['<img src="x.png" alt="p" onerror="x()">', '<img alt="p" data-to="x.png">'],
  ['<img src="//x.y/p.png" alt="p">', '<a class="document-image-link">p</a>'],
  ['<img src="/auth/sign-out">', '<a class="document-image-link">/auth/sign-out</a>'],
  ['<a href="#notes">a</a>', '<a data-to="#notes">a</a>'],
  ['<a href="#share=T" data-to="evil" tabindex="x" role="button">a</a>', '<a tabindex="x" role="button" data-to="#share=T">a</a>'],
  ['<a href="#/other">a</a>', "<a>a</a>"],
  ['<a href="notes.md">a</a>', '<a data-to="notes.md">a</a>'],
  ['<a href="java\nscript:x()">a</a>', "<a>a</a>"],
  ['<details open ontoggle="x()"><summary onclick="x()">s</summary>d</details>', '<details open=""><summary>s</summary>d</details>'],
  ['<kbd onclick="x()" class="button">k</kbd>', "<kbd>k</kbd>"],
  ['<div class="document-note" data-note="1" id="n">n</div>', '<div class="document-note" data-note="1">n</div>'],
  ['<img src="data:image/svg+xml;base64,AAAA" alt="s">', '<a class="document-image-link">s</a>'],
  ['<img src="data:image/png;base64,AAAA" alt="p" srcset="https://x.y/2.png 2x">', '<img src="data:image/png;base64,AAAA" alt="p">'],
  ['<form action="/x"><input name="a"><button>b</button></form>', "b"],
  ['<iframe src="https://x.y"></iframe><object data="x"></object><embed src="x">', ""],
  ["<svg><script>x()</script></svg><math><mi>m</mi></math>", ""],
  ["<style>*{display:none}</style><link rel=stylesheet href=x><base href=//x><meta http-equiv=refresh>", ""],
  ['<div slot="a" part="b">d</div>', "<div>d</div>"],
  ['<td background="https://x.y/p.png">t</td>', "t"],
]) {
  test(`${given} becomes ${expected}`, () => assert.equal(html(given), expected));
}

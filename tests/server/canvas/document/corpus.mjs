/**
 * Markdown in which every visible word is there once (`w1`, `w2`, …), so that where it stands in the source is known without
 * any parser. What is not visible (addresses, languages) begins with another letter.
 */

const SHAPES = [
  "W W W W",
  "W W\nW W\nW",
  "W *W W* W",
  "W **W W** W",
  "W ***W W*** W",
  "W _W_ __W W__ W",
  "W **W *W W* W** W",
  "*W W*W and **W**W",
  "W ~~W W~~ W",
  "W `W W` W",
  "W ``W ` W`` W",
  "W [W W](https://u.x/a) W",
  "W [W **W W** W](https://u.x \"t\") W",
  "W [W W][ref] W [ref2][] W [ref]\n\n[ref]: https://u.x\n[ref2]: <https://u.y> 'T'",
  "W <https://u.x/y> W https://u.x/z W <a@u.x> W",
  "W \\*W\\* W \\\\ W",
  "W &amp; W &lt;W&gt; &#42; W &copy; W",
  "W <b>W</b> W",
  "W  \nW W\\\nW W",
  "# W W",
  "### W **W** W ###",
  "W W\n===\n\nW\n---\n\nW",
  "W\n\n---\n\nW W",
  "- W W\n- W W\n- W",
  "* W W\n\n* W W\n\n* W",
  "1. W W\n2. W W\n10. W",
  "- W\n  - W W\n    - W W\n  - W\n- W",
  "- W\n\n  W W\n\n  > W W\n- W",
  "- [ ] W W\n- [x] W **W**\n- W",
  "> W W\n> W W\n>\n> W",
  "> W W\nW W\n\nW",
  "> > W W\n> > W\n> W",
  "> - W W\n>   W\n> - W **W\n>   W** W",
  "```js\nW W\n\n  W W\n```\n\nW",
  "~~~\nW W\n~~~",
  "- W\n\n  ```\n  W W\n  W\n  ```\n- W",
  "    W W\n      W\n\n    W\n\nW",
  "- W\n\n      W W\n      W",
  "\tW W\n\t\tW\n\nW",
  "-\tW W\n-\tW\n\n\tW W",
  "| W | W W |\n|---|:-:|\n| W | **W** W |\n| W | W |\n\nW",
  "W | W\n--- | ---\nW \\| W | `W`\nW |\n\nW",
  "> | W | W |\n> |---|---|\n> | W | W |",
  "W \u{1f600} W \u{1f469}\u200d\u{1f680} **W \u{1f600}** W é",
  "W ![W W](https://u.x/p.png) W",
  "W ![W](data:image/png;base64,AAAA) W",
  "W [^1] W\n\n[^1]: W W",
  "   W W\n  W\n\n   # W W",
  "W\n: W W\n\n\n\n\nW",
  "W&nbsp;W\u00a0W\tW",
  "1) W\n   W\n\n   W\n2) W",
  "+ W\n+ \n+ W",
  "*W* **W** `W` [W](https://u.x) ~~W~~",
  "**W W\nW W** W",
  "W $W W$ W **W $W$ W**",
  "W $$W W$$ W $W W$",
  "W W:\n$$\nW W\n- W\n# W\n> W\n$$\nW W",
  "$$W W$$\n\n> $$\n> W\n> W\n> $$\n> W",
  "- W\n\n  $$\n  W W\n    W\n  $$\n- W",
  "$$\nW\n- W\n# W\n> W\n+ W\n\nW",
  "| $W$ | W |\n|---|---|\n| W $W W$ | W |",
  "`W\nW` W",
  "[W\nW](https://u.x) W",
  "W <kbd>W W</kbd> W<sub>W</sub> W<sup>**W**</sup> <sub>W",
  "W <br> W<br/>W W",
  "| W<br>W | <kbd>W</kbd> |\n|---|---|\n| W | W |",
  "<details>\n<summary>W **W**</summary>\n\nW W\n\n- W\n\n</details>\n\nW",
  "<details><summary>W</summary>\n\nW W",
  "W[^1] W[^n]\n\n[^1]: W *W*\nW W\n[^n]: W",
];

/** A pseudo-random number generator, so that a failure comes back. @param {number} seed */
export function randomOf(seed) {
  let state = seed >>> 0 || 1;
  return (/** @type {number} */ below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

/** @param {string} shape @param {() => string} word */
const worded = (shape, word) => shape.replace(/\bW\b/g, word);

/** @returns {{name: string, text: string}[]} */
export function documents() {
  const word = counter();
  const single = SHAPES.flatMap((shape) => [shape, shape.replaceAll("\n", "\r\n")]).map((shape) => worded(shape, word));
  const random = randomOf(7);
  const combined = Array.from({ length: 60 }, () => {
    const parts = Array.from({ length: 2 + random(5) }, () => SHAPES[random(SHAPES.length)]);
    return worded(parts.join(random(4) === 0 ? "\n" : "\n\n"), word);
  });
  const nested = Array.from({ length: 40 }, () => {
    const inner = SHAPES[random(SHAPES.length)].split("\n");
    const [first, rest] = [["> ", "> "], ["- ", "  "], ["3. ", "   "], ["> - ", ">   "]][random(4)];
    return worded(inner.map((line, at) => (at === 0 ? first : rest) + line).join("\n"), word);
  });
  return [...single, ...combined, ...nested].map((text) => ({ name: JSON.stringify(text), text }));
}

function counter() {
  let count = 0;
  return () => `w${String(++count).padStart(5, "0")}`;
}

/** How many examples a property is given: a quick run says which part of them (`tests/property_examples.py`). */
export const examples = (count) => Math.max(3, Math.ceil(count * Number(process.env.EXAMPLES_SHARE ?? 1)));

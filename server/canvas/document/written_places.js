// @ts-check
/** From places in the text that is shown to places in the artifact's text, and back: they differ while edits are written. Pure. */

/** @typedef {{start: number, end: number}} SourceRange */
/** @typedef {readonly (SourceRange & {of: SourceRange})[]} Written  as `shownText` gives them, in order */

/**
 * The range of the artifact's text that is shown at a range; null if it reaches into what is being written.
 * @param {SourceRange} range
 * @param {Written} written
 * @returns {SourceRange|null}
 */
export function toArtifact(range, written) {
  return move(range, written, (one) => [one, one.of]);
}

/**
 * Where a range of the artifact's text is shown; null if it is being written.
 * @param {SourceRange} range
 * @param {Written} written
 * @returns {SourceRange|null}
 */
export function toShown(range, written) {
  return move(range, written, (one) => [one.of, one]);
}

/**
 * @param {SourceRange} range
 * @param {Written} written
 * @param {(one: Written[number]) => [SourceRange, SourceRange]} sides  where it stands in the text of the range, and in the other
 * @returns {SourceRange|null}
 */
function move({ start, end }, written, sides) {
  let by = 0;
  for (const one of written) {
    const [here, there] = sides(one);
    if (here.start < end && here.end > start) {
      return null;
    }
    if (here.end <= start) {
      by = there.end - here.end;
    }
  }
  return { start: start + by, end: end + by };
}

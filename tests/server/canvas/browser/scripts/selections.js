// Selects in the page itself, with the browser's own selection; says what is not found at its place in the source.
async (corpus) => {
  const modules = document.querySelector("script[type=module]").src.replace(/[^/]*$/, "document/");
  const { createMarkdownView } = await import(modules + "markdown/markdown.js");
  const { passageOf, visibleRanges } = await import(modules + "markdown/selection.js");
  const WORD = /w\d{5}/g;
  const failures = [];
  let checked = 0;
  let state = 7;
  const random = (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };

  /** Where a character of a visible word is in the source: the word is there once. */
  function sourceOf(text, node, offset) {
    const word = [...node.data.matchAll(WORD)].find(({ index }) => index <= offset && offset < index + 6);
    return word && !node.parentElement.closest(".document-image-link") ? text.indexOf(word[0]) + offset - word.index : null;
  }

  for (const { text } of corpus) {
    const view = createMarkdownView();
    document.body.append(view.element);
    view.update(text);
    view.renderAll();
    const walker = document.createTreeWalker(view.element, 4);
    const seen = [];
    while (walker.nextNode()) {
      for (let offset = 0; offset < walker.currentNode.length; offset++) {
        seen.push([walker.currentNode, offset]);
      }
    }
    for (let round = 0; round < 20; round++) {
      const from = random(seen.length);
      const to = Math.min(seen.length - 1, from + random(round % 2 ? seen.length : 12));
      const selection = document.getSelection();
      selection.setBaseAndExtent(seen[from][0], seen[from][1], seen[to][0], seen[to][1] + 1);
      const range = selection.getRangeAt(0);
      const passage = passageOf(view, range);
      const told = `${JSON.stringify(text)}: ${JSON.stringify(String(range))} is ${JSON.stringify(passage?.text)}`;
      const start = sourceOf(text, ...seen[from]);
      const end = sourceOf(text, ...seen[to]);
      const words = String(range).match(WORD) ?? [];
      if (!passage || !words.every((word) => passage.text.includes(word))) {
        failures.push(told);
      } else if ((start !== null && passage.start > start) || (end !== null && passage.end <= end)) {
        failures.push(told);
      } else if (seen[from][0] === seen[to][0] && start !== null && end !== null && !/\s/.test(String(range).replaceAll(" ", ""))) {
        const marked = visibleRanges(view, passage.start, passage.end).map(String).join("");
        if (passage.start !== start || passage.end !== end + 1 || marked !== String(range)) {
          failures.push(`${told}, shown as ${JSON.stringify(marked)}`);
        }
      }
      checked++;
    }
    view.destroy();
    view.element.remove();
  }
  return [checked, failures];
};

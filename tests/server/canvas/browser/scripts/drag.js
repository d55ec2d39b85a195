// Selects characters of a text: returns where the pointer goes down and up, or does it itself if `alone` (a pointer drags links).
// `lines` are the elements of its lines, if it has such.
(root, { start, end, lines, alone }) => {
  function placeOf(at) {
    let left = at;
    for (const holder of lines ? root.querySelectorAll(lines) : [root]) {
      const walker = document.createTreeWalker(holder, NodeFilter.SHOW_TEXT);
      while (walker.nextNode()) {
        if (left < walker.currentNode.length) {
          return [walker.currentNode, left];
        }
        left -= walker.currentNode.length;
      }
      left -= 1; // the line end
    }
    throw new Error(`${at} is not shown`);
  }
  const range = document.createRange();
  range.setStart(...placeOf(start));
  range.startContainer.parentElement.scrollIntoView({ block: "center" });
  const [node, offset] = placeOf(end - 1);
  range.setEnd(node, offset + 1);
  if (alone) {
    document.getSelection().setBaseAndExtent(range.startContainer, range.startOffset, range.endContainer, range.endOffset);
  }
  const rects = [...range.getClientRects()].filter(({ width }) => width > 0);
  const [first, last] = [rects[0], rects.at(-1)];
  return [first.left + 1, first.top + first.height / 2, last.right - 1, last.top + last.height / 2];
};

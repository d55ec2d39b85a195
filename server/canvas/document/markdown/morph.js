// @ts-check
/** Makes one DOM tree say what another one says, and touches only what differs, so that selections elsewhere stay. */

/**
 * @param {Element} target
 * @param {ParentNode} source  its children may be moved into `target`
 */
export function morphChildren(target, source) {
  const old = [...target.childNodes];
  const fresh = [...source.childNodes];
  let same = 0;
  while (same < old.length && same < fresh.length && old[same].isEqualNode(fresh[same])) {
    same++;
  }
  let tail = 0;
  while (tail < Math.min(old.length, fresh.length) - same && old[old.length - 1 - tail].isEqualNode(fresh[fresh.length - 1 - tail])) {
    tail++;
  }
  const paired = Math.min(old.length, fresh.length) - tail;
  for (let at = same; at < paired; at++) {
    morph(old[at], fresh[at]);
  }
  for (const node of old.slice(Math.max(same, paired), old.length - tail)) {
    node.remove();
  }
  const before = tail > 0 ? old[old.length - tail] : null;
  for (const node of fresh.slice(Math.max(same, paired), fresh.length - tail)) {
    target.insertBefore(node, before);
  }
}

/** @param {ChildNode} old @param {ChildNode} fresh */
function morph(old, fresh) {
  if (old instanceof Text && fresh instanceof Text) {
    morphText(old, fresh.data);
  } else if (old instanceof Element && fresh instanceof Element && sameTag(old, fresh)) {
    morphChildren(old, fresh);
  } else {
    old.replaceWith(fresh);
  }
}

/** @param {Text} node @param {string} data */
function morphText(node, data) {
  if (data.startsWith(node.data)) {
    node.appendData(data.slice(node.data.length));
  } else {
    node.data = data;
  }
}

/** @param {Element} old @param {Element} fresh */
function sameTag(old, fresh) {
  return old.tagName === fresh.tagName && /** @type {Element} */ (old.cloneNode(false)).isEqualNode(fresh.cloneNode(false));
}

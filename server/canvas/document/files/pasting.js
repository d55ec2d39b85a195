// @ts-check
/** What is pasted where nobody types becomes a document. */

const LONGEST_NAME = 40;

/**
 * @param {App} app
 * @param {Promise<void>} started  the server and the conversation of the address are known: what is pasted before waits
 */
export function mountPasting({ store, upload }, started) {
  document.addEventListener("paste", async (event) => {
    const inField = event.target instanceof Element && event.target.closest("input, textarea, [contenteditable], dialog");
    const files = [...(event.clipboardData?.files ?? [])];
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (event.defaultPrevented || inField || (files.length === 0 && !text.trim())) {
      return;
    }
    event.preventDefault();
    await started;
    if (store.state.server?.canvas) {
      const taken = Object.keys(store.state.artifacts);
      upload(files.length > 0 ? files : [new File([text], nameOfText(text, taken), { type: "text/markdown" })]);
    }
  });
}

/**
 * A file name for a text, from its first line, that is not taken yet. Pure.
 * @param {string} text
 * @param {readonly string[]} taken
 */
export function nameOfText(text, taken) {
  const line = text.trim().split("\n", 1)[0].toLowerCase();
  const words = line.match(/[\p{L}\p{N}]+/gu) ?? [];
  let name = "";
  for (const word of words) {
    const longer = name ? `${name}-${word}` : word.slice(0, LONGEST_NAME);
    if (longer.length > LONGEST_NAME) {
      break;
    }
    name = longer;
  }
  for (let count = 1; ; count++) {
    const file = `${name || "pasted"}${count > 1 ? `-${count}` : ""}.md`;
    if (!taken.includes(file)) {
      return file;
    }
  }
}

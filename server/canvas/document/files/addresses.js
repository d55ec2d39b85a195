// @ts-check
/** Which addresses the page follows, and which images it loads: none of another host; and what is within a conversation. Pure. */

/** @param {string} address */
export function linkAddress(address) {
  return /^(https?:\/\/|mailto:)/i.test(address.trim());
}

/** @param {string} address */
export function imageAddress(address) {
  return /^(blob:|data:image\/(png|jpe?g|gif|webp|avif|bmp);)/i.test(address.trim());
}

/**
 * The name of a file of the same conversation, or `#` and a heading of the same document: what names neither a host nor a path
 * from the root of one.
 * @param {string} address
 */
export function localAddress(address) {
  return address.length <= 500 && /^(?!\/)(?![a-z][a-z\d+.-]*:)[^\\\s?]+$/i.test(address) && address !== "#" && !address.startsWith("#/");
}

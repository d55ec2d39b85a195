// @ts-check
/** Which addresses the page follows, and which images it loads: none of another host. Pure. */

/** @param {string} address */
export function linkAddress(address) {
  return /^(https?:\/\/|mailto:)/i.test(address.trim());
}

/** @param {string} address */
export function imageAddress(address) {
  return /^(blob:|data:image\/(png|jpe?g|gif|webp|avif|bmp);)/i.test(address.trim());
}

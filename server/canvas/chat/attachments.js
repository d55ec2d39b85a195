// @ts-check
/** The files of a message: those that are about to be sent, and those that were. */

import { iconButton } from "../controls.js";
import { h } from "../dom.js";
import { icon } from "../icons.js";
import { TEXT, say } from "../strings.js";
import { plainName, size } from "../words.js";

export const ACCEPTED = "image/*,application/pdf,text/*,.md,.json,.yaml,.yml,.toml,.csv,.py,.js,.ts,.sh,.sql,.xml,.svg";
const IMAGES = /^image\/(png|jpeg|gif|webp|avif)$/;
/** A sender is asked before the server refuses. */
export const MOST_BYTES = 20_000_000;

/** A file that is about to be sent. @param {File} file @param {() => void} remove */
export function pendingAttachment(file, remove) {
  const name = plainName(file.name);
  const picture = IMAGES.test(file.type) ? image(URL.createObjectURL(file), true) : icon(signOf(file.type));
  return h(
    "li",
    { class: "attachment" },
    picture,
    h("bdi", { class: "truncate", title: name }, name),
    h("span", { class: "muted" }, size(file.size)),
    iconButton("close", say(TEXT.remove, { name }), remove, { size: 14 }),
  );
}

/** The files of a message that was sent. @param {Part[]} parts @returns {HTMLElement|null} */
export function sentAttachments(parts) {
  const files = parts.filter((part) => !("text" in part));
  return files.length ? h("ul", { class: "attachments", "aria-label": TEXT.attachments }, files.map(sentAttachment)) : null;
}

/** @param {any} part */
function sentAttachment(part) {
  const type = part.mediaType ?? "";
  const name = plainName(part.filename || (part.data !== undefined ? TEXT.data : part.url || TEXT.file));
  const shown = part.raw && IMAGES.test(type);
  return h("li", { class: "attachment" }, shown ? image(`data:${type};base64,${part.raw}`, false) : icon(signOf(type)), h("bdi", { class: "truncate", title: name }, name));
}

/** @param {string} src @param {boolean} release */
function image(src, release) {
  return h("img", { src, alt: "", onload: () => release && URL.revokeObjectURL(src) });
}

/** @param {string} type */
function signOf(type) {
  return type.startsWith("image/") ? "image" : "document";
}

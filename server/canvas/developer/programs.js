// @ts-check
/**
 * A request as a program that sends it once more: for a shell with curl, and for Python with httpx. Pure.
 *
 * Rule: the content of a request is hostile. Addresses and headers stand in single quotes, a body in a quoted here-document
 * or in a literal of Python; and of invisible characters, which a terminal may obey or not show, none is left.
 */

/** @typedef {import("../a2a/log.js").Request} Request */

const END = "END_OF_BODY";
const INVISIBLE = /(?! )[\p{C}\p{Z}]/gu;

/** @param {Request} request @returns {string} */
export function asCurl({ url, method, headers, body }) {
  const fields = Object.entries(headers).map(([name, value]) => `  --header ${shellWord(`${name}: ${value}`)}`);
  const first = `curl --no-buffer --globoff --request ${shellWord(method)} ${shellWord(url)}`;
  const sent = body === null ? [] : [`  --data-binary @- << '${END}'`];
  const here = body === null ? "" : `\n${shellJson(JSON.parse(body))}\n${END}`;
  return `${[first, ...fields, ...sent].join(" \\\n")}${here}\n`;
}

/** @param {Request} request @returns {string} */
export function asPython({ url, method, headers, body }) {
  return [
    "import json",
    "",
    "import httpx",
    "",
    `url = ${pythonLiteral(url)}`,
    `headers = ${pythonLiteral(headers)}`,
    ...(body === null ? [] : [`body = ${pythonLiteral(JSON.parse(body))}`]),
    "",
    `content = ${body === null ? "None" : "json.dumps(body)"}`,
    "timeout = httpx.Timeout(10, read=None)",
    `with httpx.stream(${pythonLiteral(method)}, url, headers=headers, content=content, timeout=timeout) as response:`,
    "    for text in response.iter_text():",
    '        print(text, end="", flush=True)',
    "",
  ].join("\n");
}

/** A word of a POSIX shell. @param {string} text */
function shellWord(text) {
  return `'${text.replace(INVISIBLE, "").replaceAll("'", String.raw`'\''`)}'`;
}

/** JSON in which an interactive shell finds no history to expand. @param {any} value */
function shellJson(value) {
  return JSON.stringify(value, null, 2).replace(/(?![ \n])[\p{C}\p{Z}!]/gu, utf16Escapes);
}

/** @param {any} value @param {string} [margin] @returns {string} */
function pythonLiteral(value, margin = "") {
  const inner = `${margin}    `;
  /** @param {string} open @param {string[]} members @param {string} close */
  const block = (open, members, close) =>
    members.length ? `${open}\n${members.map((each) => `${inner}${each},\n`).join("")}${margin}${close}` : open + close;
  if (Array.isArray(value)) {
    return block("[", value.map((each) => pythonLiteral(each, inner)), "]");
  }
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(([name, each]) => `${pythonString(name)}: ${pythonLiteral(each, inner)}`);
    return block("{", members, "}");
  }
  if (typeof value === "string") {
    return pythonString(value);
  }
  return value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : String(value);
}

/** JSON's escapes are Python's, too, but for characters beyond 16 bits. @param {string} text */
function pythonString(text) {
  return JSON.stringify(text).replace(INVISIBLE, pythonEscape);
}

/** @param {string} character */
function utf16Escapes(character) {
  return [...Array(character.length).keys()].map((at) => `\\u${hex(character.charCodeAt(at), 4)}`).join("");
}

/** @param {string} character */
function pythonEscape(character) {
  return character.length > 1 ? `\\U${hex(character.codePointAt(0) ?? 0, 8)}` : utf16Escapes(character);
}

/** @param {number} number @param {number} digits */
function hex(number, digits) {
  return number.toString(16).padStart(digits, "0");
}

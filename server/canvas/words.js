// @ts-check
/** What the page says of things: operations, passages, times, sizes. Pure. */

/** The languages of the user: for dates and numbers, while the page says everything in English. Of some systems they are none. */
export const LOCALES = (globalThis.navigator?.languages ?? []).filter(isLocale);

/** @param {string} tag */
function isLocale(tag) {
  try {
    return Intl.getCanonicalLocales(tag).length > 0;
  } catch {
    return false;
  }
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** @param {number} count @param {string} one @param {string} [many] @param {readonly string[]} [locales] */
export function formatCount(count, one, many = `${one}s`, locales = LOCALES) {
  return `${formatNumber(count, locales)} ${count === 1 ? one : many}`;
}

/** @param {number} value @param {readonly string[]} [locales] */
export const formatNumber = (value, locales = LOCALES) => value.toLocaleString([...locales], { maximumFractionDigits: 1 });

/** A name that cannot turn the words around it: without the marks that change the direction of writing. @param {string} name */
export const plainName = (name) => name.replace(/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");

/**
 * A value that can be sent: half of a surrogate pair, which no text of a server can have, becomes U+FFFD.
 * @template T
 * @param {T} value
 * @returns {T}
 */
export function wellFormed(value) {
  /** @type {any} */
  const any = value;
  if (typeof any === "string") {
    return /** @type {any} */ (any.replace(/\p{Surrogate}/gu, "\ufffd"));
  }
  if (Array.isArray(any)) {
    return /** @type {any} */ (any.map(wellFormed));
  }
  return any && typeof any === "object" ? /** @type {any} */ (Object.fromEntries(Object.entries(any).map(([name, each]) => [name, wellFormed(each)]))) : value;
}

/** The first words of a text, in one line. @param {string} text @param {number} length */
export function shorten(text, length) {
  const line = text.replace(/\s+/g, " ").trim();
  if (line.length <= length) {
    return line;
  }
  const cut = line.slice(0, length);
  return `${/[\uD800-\uDBFF]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

/**
 * What an operation was asked to do, as "Edit of lines 3–4" and "make it shorter".
 * @param {Operation} operation
 * @param {string} name  of the artifact
 * @param {string} instruction
 * @returns {{what: string, detail: string}}
 */
export function operationWords(operation, name, instruction) {
  switch (operation.op) {
    case "edit":
      return { what: `Edit of ${passageWords(operation.selection) || name}`, detail: instruction };
    case "undo":
      return { what: `Undo in ${name}`, detail: "" };
    case "redo":
      return { what: `Redo in ${name}`, detail: "" };
    case "restore":
      return { what: `Back to version ${operation.version} of ${name}`, detail: "" };
    case "put":
      return { what: operation.name ? `You added ${name}` : `Your changes to ${name}`, detail: "" };
    default:
      return { what: `${operation.op} of ${name}`, detail: instruction };
  }
}

/** @param {SelectionRequest|undefined} selection */
export function passageWords(selection) {
  const { lineStart, lineEnd = lineStart, text } = selection ?? {};
  if (lineStart) {
    return lineStart === lineEnd ? `line ${lineStart}` : `lines ${lineStart}–${lineEnd}`;
  }
  return text?.trim() ? `“${shorten(text, 48)}”` : "";
}

/** How long ago something was, short. @param {string} timestamp @param {number} now @param {readonly string[]} [locales] */
export function ago(timestamp, now, locales = LOCALES) {
  const passed = now - Date.parse(timestamp);
  if (Number.isNaN(passed)) {
    return "";
  }
  if (passed < MINUTE) {
    return "now";
  }
  if (passed < HOUR) {
    return `${Math.floor(passed / MINUTE)} min`;
  }
  if (passed < DAY) {
    return `${Math.floor(passed / HOUR)} h`;
  }
  return passed < 7 * DAY ? `${Math.floor(passed / DAY)} d` : day(new Date(timestamp), new Date(now), locales);
}

/** @param {Date} date @param {Date} today @param {readonly string[]} locales */
function day(date, today, locales) {
  const year = date.getFullYear() === today.getFullYear() ? undefined : "numeric";
  return date.toLocaleDateString([...locales], { day: "numeric", month: "short", year });
}

/** The part of the list in which a time stands. @param {string} timestamp @param {number} now */
export function period(timestamp, now) {
  const midnight = new Date(now).setHours(0, 0, 0, 0);
  const time = Date.parse(timestamp);
  if (time >= midnight) {
    return "Today";
  }
  if (time >= midnight - DAY) {
    return "Yesterday";
  }
  return time >= midnight - 7 * DAY ? "Last 7 days" : "Earlier";
}

/** @param {number} bytes @param {readonly string[]} [locales] */
export function size(bytes, locales = LOCALES) {
  if (bytes < 1000) {
    return formatCount(bytes, "byte", "bytes", locales);
  }
  const unit = bytes < 999_500 ? 0 : bytes < 999_500_000 ? 1 : 2;
  const value = bytes / 1000 ** (unit + 1);
  return `${formatNumber(Number(value.toFixed(value < 100 ? 1 : 0)), locales)} ${["KB", "MB", "GB"][unit]}`;
}

const QUESTION = /[?？؟]\s*$|^\s*(?:what|why|how|who|whom|whose|where|when|which|is|are|was|were|does|did|can|could|should|explain|describe|tell me)\b/i;

/** Whether a message asks for an answer, and not for a change. @param {string} text */
export const isQuestion = (text) => QUESTION.test(text);

const ITEM = /^[ \t]*(?:[-*•]|\(?[0-9a-z][.)])[ \t]+(.+?)[ \t]*$/gim;

/**
 * The answers that a question offers: the items of its list, what it names before and after an "or", yes and no.
 * @param {string} question
 * @returns {string[]}
 */
export function choicesOf(question) {
  const items = itemsOf(question);
  if (isChoice(items)) {
    return items.map(plain);
  }
  const named = question.match(/[:,]\s+([^:?\n]+\sor\s[^:?\n]+)\?\s*$/i)?.[1] ?? "";
  const names = named.split(/,\s*(?:or\s+)?|\s+or\s+/i).map((each) => each.trim()).filter(Boolean);
  if (isChoice(names)) {
    return names.map(plain);
  }
  return /\(yes\/no\)|\byes or no\b/i.test(question) ? ["Yes", "No"] : [];
}

/** A question without the list of its answers, where they are shown as buttons. @param {string} question */
export function withoutChoices(question) {
  const bare = isChoice(itemsOf(question)) ? question.replace(ITEM, "").replace(/\n\s*\n/g, "\n\n").trim() : "";
  return bare || question;
}

/** @param {string} question */
function itemsOf(question) {
  return [...question.matchAll(ITEM)].map(([, item]) => item);
}

/** @param {string[]} items */
function isChoice(items) {
  return items.length >= 2 && items.length <= 6 && items.every((item) => item.length <= 60);
}

/** An answer without the marks of Markdown and quotes. @param {string} item */
function plain(item) {
  return item.replace(/(\*\*|__|`)(.+?)\1/g, "$2").replace(/^([“"'])(.+?)([”"'])[.,;]?$/, "$2");
}

// @ts-check
/**
 * A text of separated values as a grid: the first row is its head. Only the rows that are seen are there, so that all of them
 * scroll alike. A cell that is edited is a change of its place in the text (csv.js).
 */

import { copyText } from "../../clipboard.js";
import { button } from "../../controls.js";
import { fill, h, setText } from "../../dom.js";
import { TEXT, say } from "../../strings.js";
import { formatCount, plainName } from "../../words.js";
import { download } from "../files/preview.js";
import { cellChange, cellText, delimiterOf, forSpreadsheet, isFormula, parseCsv } from "./csv.js";
import { createEditedText } from "./edited_text.js";

/** As in views.css. In pixels. */
const ROW_HEIGHT = 30;
/** Rows that are there above and below those that are seen. */
const SPARE = 10;
/** A longer text is shown as it is. In characters. */
const LARGEST = 5_000_000;
/** Rows that decide how wide a column is. */
const MEASURED = 200;

/** @typedef {import("./csv.js").Row} Row */
/** @typedef {import("./edited_text.js").Change} Change */

/** @param {string} text @param {string} delimiter */
const read = (text, delimiter) => (text.length > LARGEST ? { rows: null, broken: TEXT.tableTooLarge } : parseCsv(text, delimiter));

/**
 * @param {object} options
 * @param {string} options.text
 * @param {string} options.name
 * @param {boolean} options.isTabbed
 * @param {(shown: string, change: Change) => Promise<unknown>} [options.onChange]  the user has changed a cell of what is shown;
 *     it is saved, or could not be, once this resolves
 * @param {(why: string) => void} options.onBroken  it is no table
 */
export function createGrid({ text: given, name, isTabbed, onChange, onBroken }) {
  const delimiter = delimiterOf(given, isTabbed);
  const label = say(TEXT.tableOf, { name: plainName(name) });
  const head = h("div", { class: "grid-row grid-head", role: "row", "aria-rowindex": "1" });
  const body = h("div", { class: "grid-body", role: "presentation" });
  const sheet = h("div", { class: "grid-sheet", role: "presentation" }, head, body);
  const scroller = h("div", { class: "document-scroller grid", role: "grid", tabIndex: 0, "aria-label": label, onscroll: draw, onkeydown: onKey, ondblclick: () => edit(), onmousedown: choose }, sheet);
  const about = h("span", { class: "muted", role: "status" });
  const bar = h("div", { class: "document-run-bar" }, button(TEXT.copyTable, copyAll), button(TEXT.downloadTable, save), about);
  const element = h("div", { class: "document-run" }, bar, scroller);
  const observer = "ResizeObserver" in globalThis ? new ResizeObserver(draw) : null;
  /** @type {Row[]} */
  let rows = [];
  let columns = 0;
  let active = { row: 0, column: 0 };
  /** @type {HTMLInputElement|null} */
  let field = null;
  const edited = createEditedText({ text: given, isEditing: () => field !== null, show, onChange });
  observer?.observe(scroller);
  show(given);

  return {
    element,
    scroller,
    update: edited.update,
    destroy: () => observer?.disconnect(),
  };

  /** @param {string} next */
  function show(next) {
    const table = read(next, delimiter);
    if (table.rows === null) {
      onBroken(table.broken);
      return;
    }
    [edited.text, rows] = [next, table.rows];
    columns = rows.reduce((most, row) => Math.max(most, row.length / 2), 0);
    active = { row: Math.min(active.row, rows.length - 1), column: Math.min(active.column, columns - 1) };
    scroller.setAttribute("aria-rowcount", String(rows.length));
    scroller.setAttribute("aria-colcount", String(columns));
    scroller.setAttribute("aria-readonly", String(!onChange));
    const widthOf = (/** @type {number} */ column) => rows.slice(0, MEASURED).reduce((most, row) => Math.max(most, cellText(edited.text, row, column).length), 0);
    sheet.style.setProperty("--grid-columns", Array.from({ length: columns }, (_, column) => `${Math.min(Math.max(widthOf(column), 4), 40) + 3}ch`).join(" "));
    body.style.height = `${(rows.length - 1) * ROW_HEIGHT}px`;
    setText(about, aboutOf());
    draw();
  }

  function aboutOf() {
    const formulas = rows.reduce((sum, row) => sum + valuesOf(row).filter(isFormula).length, 0);
    const size = `${formatCount(rows.length, "row")}, ${formatCount(columns, "column")}`;
    return formulas ? `${size}. ${say(TEXT.tableFormulas, { cells: formatCount(formulas, "cell") })}` : size;
  }

  /** @param {Row} row */
  function valuesOf(row) {
    return Array.from({ length: row.length / 2 }, (_, column) => cellText(edited.text, row, column));
  }

  /** The rows that are seen. */
  function draw() {
    const from = Math.max(1, Math.floor(scroller.scrollTop / ROW_HEIGHT) - SPARE);
    const to = Math.min(rows.length, Math.ceil((scroller.scrollTop + scroller.clientHeight) / ROW_HEIGHT) + SPARE);
    const kept = field?.parentElement?.parentElement;
    const shown = [];
    for (let at = from; at < to; at++) {
      shown.push(kept?.dataset.row === String(at) ? kept : rowElement(at));
    }
    // A field that leaves the document would lose what is typed.
    const isKept = kept && kept !== head;
    isKept && !shown.includes(kept) && shown.push(kept);
    for (const row of [...body.children]) {
      shown.includes(row) || row.remove();
    }
    shown.forEach((row) => row.isConnected || body.append(row));
    kept === head || fill(head, cellsOf(0));
    scroller.setAttribute("aria-activedescendant", idOf(active));
  }

  /** @param {{row: number, column: number}} place */
  function idOf({ row, column }) {
    return `cell-${row}-${column}`;
  }

  /** @param {number} at */
  function rowElement(at) {
    const style = `transform: translateY(${(at - 1) * ROW_HEIGHT}px)`;
    return h("div", { class: "grid-row", role: "row", "aria-rowindex": String(at + 1), "data-row": String(at), style }, cellsOf(at));
  }

  /** @param {number} at */
  function cellsOf(at) {
    const row = rows[at] ?? [];
    return Array.from({ length: columns }, (_, column) =>
      h(
        "div",
        {
          class: "grid-cell truncate",
          role: at === 0 ? "columnheader" : "gridcell",
          id: idOf({ row: at, column }),
          dir: "auto",
          "aria-colindex": String(column + 1),
          "aria-selected": String(at === active.row && column === active.column),
          // It would need separators before it.
          "aria-readonly": onChange && 2 * column < row.length ? null : "true",
        },
        cellText(edited.text, row, column),
      ),
    );
  }

  /** @param {number} row @param {number} column */
  function go(row, column) {
    active = { row: Math.min(Math.max(row, 0), rows.length - 1), column: Math.min(Math.max(column, 0), columns - 1) };
    const top = (active.row - 1) * ROW_HEIGHT;
    const seen = scroller.clientHeight - ROW_HEIGHT;
    if (active.row > 0 && top < scroller.scrollTop) {
      scroller.scrollTop = top;
    } else if (active.row > 0 && top + ROW_HEIGHT > scroller.scrollTop + seen) {
      scroller.scrollTop = top + ROW_HEIGHT - seen;
    }
    draw();
    document.getElementById(idOf(active))?.scrollIntoView?.({ block: "nearest", inline: "nearest" });
  }

  /** @param {MouseEvent} event */
  function choose({ target }) {
    const cell = target instanceof Element && !target.matches("input") ? target.closest(".grid-cell") : null;
    const [, row, column] = cell?.id.split("-").map(Number) ?? [];
    if (cell) {
      field?.blur();
      go(row, column);
    }
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const { key, ctrlKey, metaKey, altKey } = event;
    if (field || altKey) {
      return;
    }
    const { row, column } = active;
    const page = Math.max(1, Math.floor(scroller.clientHeight / ROW_HEIGHT) - 2);
    const far = ctrlKey || metaKey;
    /** @type {Record<string, () => void>} */
    const moves = {
      ArrowUp: () => go(far ? 0 : row - 1, column),
      ArrowDown: () => go(far ? rows.length : row + 1, column),
      ArrowLeft: () => go(row, far ? 0 : column - 1),
      ArrowRight: () => go(row, far ? columns : column + 1),
      PageUp: () => go(row - page, column),
      PageDown: () => go(row + page, column),
      Home: () => go(far ? 0 : row, 0),
      End: () => go(far ? rows.length : row, columns),
      Enter: () => edit(),
      F2: () => edit(),
      Delete: () => change(""),
      Backspace: () => change(""),
    };
    if (far && key.toLowerCase() === "c" && document.getSelection()?.isCollapsed !== false) {
      event.preventDefault();
      copy([[cellText(edited.text, rows[row], column)]]);
    } else if (moves[key]) {
      event.preventDefault();
      moves[key]();
    } else if (key.length === 1 && !far) {
      event.preventDefault();
      edit(key);
    }
  }

  function mayChange() {
    return onChange !== undefined && 2 * active.column < (rows[active.row]?.length ?? 0);
  }

  /** @param {string} [typed]  takes the place of what is there */
  function edit(typed) {
    go(active.row, active.column);
    const cell = document.getElementById(idOf(active));
    if (!mayChange() || !cell) {
      return;
    }
    const value = cellText(edited.text, rows[active.row], active.column);
    const input = h("textarea", { class: "grid-field", rows: 1, "aria-label": label, value: typed ?? value, onkeydown: onFieldKey, onblur: () => commit() });
    field = input;
    fill(cell, input);
    input.focus();
    typed === undefined && input.select();
  }

  /** @param {KeyboardEvent} event */
  function onFieldKey(event) {
    const { key, shiftKey, altKey, isComposing } = event;
    event.stopPropagation();
    if (isComposing || (key === "Enter" && (altKey || shiftKey))) {
      return;
    }
    const [down, across] = { Enter: [1, 0], Tab: [0, shiftKey ? -1 : 1], Escape: [0, 0] }[key] ?? [];
    if (down !== undefined && across !== undefined) {
      event.preventDefault();
      commit(key !== "Escape");
      scroller.focus();
      go(active.row + down, active.column + across);
    }
  }

  function commit(isKept = true) {
    const value = field?.value;
    const { row, column } = active;
    field = null;
    if (value !== undefined && isKept && value !== cellText(edited.text, rows[row], column)) {
      change(value);
    } else if (value !== undefined) {
      draw();
      edited.catchUp();
    }
  }

  /** @param {string} value */
  function change(value) {
    if (!mayChange()) {
      return;
    }
    const next = cellChange(edited.text, delimiter, rows[active.row], active.column, value);
    if (edited.text.slice(next.start, next.end) !== next.text) {
      edited.change(next);
      show(edited.text);
    }
  }

  /** @param {string[][]} values */
  async function copy(values) {
    setText(about, (await copyText(forSpreadsheet(values, "\t"))) ? TEXT.tableCopied : TEXT.cannotCopy);
  }

  function copyAll() {
    copy(rows.map(valuesOf));
  }

  function save() {
    const type = isTabbed ? "text/tab-separated-values" : "text/csv";
    const ending = isTabbed ? ".tsv" : ".csv";
    download(new Blob([`${forSpreadsheet(rows.map(valuesOf), delimiter)}\r\n`], { type }), `${name.replace(/\.(csv|tsv)$/i, "")}-spreadsheet${ending}`);
  }
}

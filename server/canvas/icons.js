// @ts-check
/** The icons of the page: lines on a grid of 16, in the colour of the text beside them. */

/** @type {Record<string, string>} */
const PATHS = {
  attach: "M13 7.2 7.9 12.3a3.1 3.1 0 0 1-4.4-4.4l5.4-5.4a2.1 2.1 0 0 1 3 3L6.5 10.9a1 1 0 0 1-1.5-1.5l4.8-4.8",
  chat: "M2.5 3.5h11v7.5H7l-3 2.5V11H2.5z",
  check: "m3 8.5 3.2 3.2L13 4.8",
  close: "m4 4 8 8M12 4l-8 8",
  code: "m5.5 4.5-3.5 3.5 3.5 3.5M10.5 4.5 14 8l-3.5 3.5",
  compare: "M2.5 3h4.5v10H2.5zM9 3h4.5v10H9z",
  copy: "M5.5 5.5h8v8h-8zM10.5 5.5v-3h-8v8h3",
  document: "M4 1.8h5.2L12.5 5v9.2H4zM9 2v3.3h3.2M6.3 8.4h4M6.3 11h4",
  down: "M8 3v10M3.8 8.8 8 13l4.2-4.2",
  download: "M8 2v8M4.8 7 8 10.2 11.2 7M2.8 13.5h10.4",
  edit: "m3 13 .6-2.8L11 2.8a1.2 1.2 0 0 1 1.7 0l.5.5a1.2 1.2 0 0 1 0 1.7L5.8 12.4z",
  failed: "M8 1.8 14.6 13.4H1.4zM8 6.2v3.4M8 11.3v.4",
  forward: "M6.5 3.5 11 8l-4.5 4.5",
  history: "M2.2 8A5.8 5.8 0 1 0 4 3.8L2.3 5.4M2.2 2.4v3.1h3.1M8 4.8V8l2.2 1.6",
  image: "M2 3h12v10H2zM2.2 11.2 5.8 7.6l3 3 2-2 3 3M10.6 6.3v.1",
  info: "M8 14.2A6.2 6.2 0 1 0 8 1.8a6.2 6.2 0 0 0 0 12.4M8 7.3v3.9M8 4.8v.3",
  link: "M6.6 9.4 9.4 6.6M7.2 4.6l1.5-1.5a3 3 0 0 1 4.2 4.2l-1.5 1.5M8.8 11.4l-1.5 1.5a3 3 0 0 1-4.2-4.2l1.5-1.5",
  list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.4 4h.2M2.4 8h.2M2.4 12h.2",
  lock: "M3.5 7.2h9v6.3h-9zM5.3 7V5a2.7 2.7 0 0 1 5.4 0v2",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  more: "M3.2 8h.1M8 8h.1M12.8 8h.1",
  open: "M6.5 3.5h-4v10h10v-4M9 2.5h4.5V7M13.2 2.8 7.5 8.5",
  people: "M6 7.6a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M1.6 13.4c.3-2.3 2-3.8 4.4-3.8s4.1 1.5 4.4 3.8M10.6 2.9a2.4 2.4 0 0 1 0 4.5M12 9.9c1.4.5 2.2 1.8 2.4 3.5",
  play: "M4.8 3v10L13 8z",
  plus: "M8 3v10M3 8h10",
  print: "M4.5 6V2.5h7V6M4.5 11.5h-2V6h11v5.5h-2M4.5 9.5h7v4h-7z",
  question: "M2.5 3h11v8H8.5l-3 2.5V11h-3zM6.6 5.8A1.5 1.5 0 1 1 8 7.6v.2M8 9.3v.1",
  redo: "M10.5 2.5 13.5 5.5l-3 3M13.2 5.5H6.4a3.9 3.9 0 0 0 0 7.8h3",
  retry: "M13.6 8A5.6 5.6 0 1 1 12 4l1.6 1.6M13.7 2.3v3.4h-3.4",
  search: "M7 11.8a4.8 4.8 0 1 0 0-9.6 4.8 4.8 0 0 0 0 9.6M10.5 10.5 14 14",
  send: "M8 13V3M3.8 7.2 8 3l4.2 4.2",
  sidebar: "M2 3h12v10H2zM6.2 3.2v9.6",
  stop: "M4.5 4.5h7v7h-7z",
  switch: "m4.5 6 3.5-3.5L11.5 6M4.5 10 8 13.5 11.5 10",
  trash: "M2.8 4.3h10.4M6 4V2.5h4V4M4.2 4.5l.6 9h6.4l.6-9M6.7 7v4M9.3 7v4",
  undo: "M5.5 2.5 2.5 5.5l3 3M2.8 5.5h6.8a3.9 3.9 0 0 1 0 7.8h-3",
  upload: "M8 10.2V2.2M4.8 5.4 8 2.2l3.2 3.2M2.8 13.5h10.4",
};

/** These are areas and no lines. */
const FILLED = ["stop"];
/** These are dots: their lines are thick. */
const THICK = ["more"];

/**
 * An icon, hidden from screen readers: the control that it stands in has a name.
 * @param {string} name  a key of PATHS
 * @param {number} [size]  in pixels
 * @returns {SVGSVGElement}
 */
export function icon(name, size = 16) {
  const svg = element("svg", {
    viewBox: "0 0 16 16",
    width: size,
    height: size,
    fill: FILLED.includes(name) ? "currentColor" : "none",
    stroke: "currentColor",
    "stroke-width": THICK.includes(name) ? 2 : 1.4,
    "stroke-linecap": "round",
    "stroke-linejoin": "round",
    "aria-hidden": "true",
  });
  svg.append(element("path", { d: PATHS[name] ?? "" }));
  return /** @type {SVGSVGElement} */ (svg);
}

/** The sign of the program. @returns {SVGSVGElement} */
export function brand() {
  const svg = element("svg", { viewBox: "3 3 26 26", width: 22, height: 22, fill: "none", "aria-hidden": "true" });
  svg.append(
    element("rect", { x: 3, y: 3, width: 26, height: 26, rx: 7, fill: "currentColor" }),
    element("path", {
      d: "M9.5 11.5h13M9.5 19.5h5.5M19.5 15.5v8",
      stroke: "var(--color-sunken)",
      "stroke-width": 2.4,
      "stroke-linecap": "round",
    }),
  );
  return /** @type {SVGSVGElement} */ (svg);
}

/** @param {string} tag @param {Record<string, string|number>} attributes */
function element(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) {
    made.setAttribute(name, String(value));
  }
  return made;
}

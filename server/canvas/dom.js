// @ts-check
/** Makes DOM elements. Text always becomes a text node: nothing here parses HTML. */

/**
 * An element. In `props`, what begins with `on` is an event listener, `class`, `role`, `aria-…`, `data-…` and other names
 * with a dash are attributes, a `ref` is called with the element, everything else is a property. `null`, `false` and
 * `undefined` children are left out; other values that are no node become text.
 *
 * @param {string} tag
 * @param {Record<string, any>} [props]
 * @param {...any} children
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    set(element, name, value);
  }
  element.append(...nodes(children));
  return element;
}

/**
 * Replaces the children of `element`.
 * @param {Element} element
 * @param {...any} children
 */
export function fill(element, ...children) {
  element.replaceChildren(...nodes(children));
}

/** A text node that stays the same is not announced again. @param {HTMLElement} element @param {string} text */
export function setText(element, text) {
  if (element.textContent !== text) {
    element.textContent = text;
  }
}

/** @param {any} element @param {string} name @param {any} value */
function set(element, name, value) {
  if (name === "ref") {
    value(element);
  } else if (name.startsWith("on")) {
    value && element.addEventListener(name.slice(2), value);
  } else if (value === null || value === undefined || value === false) {
    element.removeAttribute(name);
  } else if (name in element && name !== "list" && name !== "role") {
    element[name] = value;
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

/** @param {any[]} children @returns {(Node|string)[]} */
function nodes(children) {
  return children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : String(child)));
}

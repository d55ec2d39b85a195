// @ts-check
/** The outline of the document that is shown: a menu of its headings, in which the one of the section in view is chosen. */

import { iconButton } from "../controls.js";
import { openMenu } from "../dialogs.js";
import { shorten } from "../words.js";
import { TEXT } from "../strings.js";

/** So far below the top of the view a heading may be whose section counts as in view. In pixels. */
const NEAR_TOP = 80;
const CHARACTERS = 80;

/** A heading of the text that is shown; `run` scrolls to it. @typedef {import("./markdown/outline.js").Heading & {run: () => void}} Heading */

/**
 * @param {object} options
 * @param {() => Promise<Heading[]>} options.headings
 * @param {() => import("./views.js").View|null} options.view
 * @returns {{button: HTMLElement, open: (opener: HTMLElement) => Promise<void>}}  `button` for the head of the document
 */
export function createOutline({ headings, view }) {
  const toggle = iconButton("list", TEXT.outline, () => open(toggle), { class: "document-copy", "aria-haspopup": "menu" });
  return { button: toggle, open };

  /** @param {HTMLElement} opener */
  async function open(opener) {
    const found = await headings();
    const shown = view();
    const top = (shown?.scroller.getBoundingClientRect().top ?? 0) + NEAR_TOP;
    const current = found.findLastIndex((heading) => (shown?.heightOf(heading) ?? Infinity) <= top);
    const highest = Math.min(...found.map(({ level }) => level));
    const items = found.map((heading, at) => ({
      text: shorten(heading.text, CHARACTERS),
      look: `outline-${Math.min(heading.level - highest, 3)}`,
      current: at === current,
      run: heading.run,
    }));
    openMenu(opener, items.length ? items : [{ text: TEXT.noHeadings, run() {} }]);
  }
}

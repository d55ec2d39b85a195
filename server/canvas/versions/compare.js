// @ts-check
/** Two versions of a text compared: rendered, or their sources side by side or inline. Loads the editor's merge package when it is first needed. */

import { loadLanguage } from "../document/editor/language.js";
import { partOf } from "../loading.js";
import { styleNonce } from "../policy.js";
import { TEXT } from "../strings.js";
import { createRendered } from "./rendered.js";

const COLLAPSE = { margin: 3, minSize: 6 };

const mergePart = partOf(() => Promise.all([import("../vendor/codemirror.js"), import("../vendor/merge.js")]));
const markdownPart = partOf(() => import("../document/markdown/markdown.js"));

/**
 * @param {{old: string, text: string, language: string, rendered: boolean, inline: boolean, prose: boolean}} options  `prose`: lines
 *     are wrapped and have no numbers; `rendered`: as Markdown looks
 * @returns {Promise<{dom: HTMLElement, destroy: () => void}>}
 */
export async function createComparison({ old, text, language, rendered, inline, prose }) {
  const [codemirror, merge] = await mergePart.get();
  if (rendered) {
    const { blocksOf } = await markdownPart.get();
    const both = blocksOf(old, text);
    return createRendered(both.old, both.next, merge.diff);
  }
  const { EditorState, EditorView, lineNumbers, syntaxHighlighting, classHighlighter } = codemirror;
  const support = await loadLanguage(language);
  const extensions = [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorState.lineSeparator.of("\n"),
    EditorView.contentAttributes.of({ tabindex: "0" }),
    prose ? EditorView.lineWrapping : lineNumbers(),
    syntaxHighlighting(classHighlighter),
    EditorView.cspNonce.of(styleNonce()),
    ...(support ? [support] : []),
  ];
  if (inline) {
    const unified = merge.unifiedMergeView({ original: old, mergeControls: false, collapseUnchanged: COLLAPSE });
    return new EditorView({ doc: text, extensions: [...extensions, unified] });
  }
  return new merge.MergeView({
    a: { doc: old, extensions: [...extensions, label(EditorView, TEXT.oldVersion)] },
    b: { doc: text, extensions: [...extensions, label(EditorView, TEXT.newVersion)] },
    collapseUnchanged: COLLAPSE,
  });
}

/** @param {any} EditorView @param {string} name */
const label = (EditorView, name) => EditorView.contentAttributes.of({ "aria-label": name });

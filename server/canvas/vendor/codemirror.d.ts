export * from "@codemirror/state";
export * from "@codemirror/view";
export * from "@codemirror/commands";
export * from "@codemirror/language";
export * from "@codemirror/search";
export { Tag, classHighlighter, highlightCode, highlightTree, tagHighlighter, tags } from "@lezer/highlight";

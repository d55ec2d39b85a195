export { markdown as language } from "@codemirror/lang-markdown";

export { css as language } from "@codemirror/lang-css";

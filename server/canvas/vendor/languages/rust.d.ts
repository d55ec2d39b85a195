export { rust as language } from "@codemirror/lang-rust";

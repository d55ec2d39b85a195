export { javascript as language } from "@codemirror/lang-javascript";

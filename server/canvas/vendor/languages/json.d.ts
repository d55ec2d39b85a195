export { json as language } from "@codemirror/lang-json";

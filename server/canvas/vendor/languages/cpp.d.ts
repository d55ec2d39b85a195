export { cpp as language } from "@codemirror/lang-cpp";

export { java as language } from "@codemirror/lang-java";

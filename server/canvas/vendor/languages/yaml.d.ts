export { yaml as language } from "@codemirror/lang-yaml";

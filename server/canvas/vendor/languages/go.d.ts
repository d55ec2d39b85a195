export { go as language } from "@codemirror/lang-go";

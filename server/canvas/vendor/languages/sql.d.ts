export { sql as language } from "@codemirror/lang-sql";

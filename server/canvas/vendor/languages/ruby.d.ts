export function language(): import("@codemirror/language").LanguageSupport;

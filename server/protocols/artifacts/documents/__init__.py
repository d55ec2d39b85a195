"""A Markdown text as a document of a word processor, with its comments and suggestions, made by pandoc."""

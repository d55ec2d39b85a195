"""Texts: Markdown, languages, outlines, and the part of an answer that a user sees. Pure."""

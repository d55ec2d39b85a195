"""What the agent knows of texts: Markdown, languages, outlines, and what of an answer a user sees. Pure."""

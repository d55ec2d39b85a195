"""Finds the caller of a request by its credentials: API keys, tokens, links, sessions, signed addresses."""

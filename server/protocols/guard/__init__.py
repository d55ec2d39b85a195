"""Checks and parses a request before a handler sees it: host, size, version, form. A request is parsed only here."""

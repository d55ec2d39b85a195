"""Checks a request before a handler sees it: host, size, version, form. A request is parsed here, once."""

"""Texts: ropes, ranges, and allowed characters. Pure; independent of artifacts."""

"""Texts: ropes, ranges, and the characters that are allowed. Pure; knows nothing of artifacts."""

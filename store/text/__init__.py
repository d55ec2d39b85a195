"""Texts: ropes, ranges, differences, allowed characters, wording of messages. Pure; independent of artifacts."""

"""Delivers push notifications: over HTTP, to targets that are checked."""

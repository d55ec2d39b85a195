"""Contexts, artifacts and their versions as HTTP resources, and the event stream of a context."""

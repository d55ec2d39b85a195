"""Serves the page of `server/canvas`: its files, compressed and with their policy."""

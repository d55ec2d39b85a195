"""`a2a-canvas doctor`: checks whether a server could run here with its settings, and how it looks from outside."""

"""`a2a-canvas doctor`: whether a server could run here as it is set up, and how it looks from outside."""

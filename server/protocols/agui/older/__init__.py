"""The older form of AG-UI's requests, translated to the current one, and its state on the way back."""

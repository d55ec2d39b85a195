"""The older form of AG-UI's requests: translates it to the current form, and its state back."""

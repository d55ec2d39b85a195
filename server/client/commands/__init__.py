"""The commands of the terminal client, their arguments, and shell completion of their values."""

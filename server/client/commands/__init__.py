"""The commands of the terminal client, their arguments, and the completion of their values in a shell."""

"""The output of the terminal client: a running task, folded from its events, and texts that fit the terminal."""

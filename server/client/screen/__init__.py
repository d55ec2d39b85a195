"""What the terminal client shows: a task as it runs, folded from its events, and texts that fit the terminal."""

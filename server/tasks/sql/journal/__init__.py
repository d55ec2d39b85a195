"""The journal in a database: its group commit, reading, retention and removal, and the tails that subscribers read."""

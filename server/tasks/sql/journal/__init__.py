"""The journal in a database: its part of the group commit, reading, retention and removal, and the tails that
subscribers read.
"""

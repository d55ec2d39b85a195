"""The commands of the terminal client, their arguments, and the completion of what they take.

Owns no table: the client is a program of its own.
"""

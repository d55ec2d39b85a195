"""What the model and an agent's own loop do with comments and suggestions: list, comment, suggest, reply, resolve.

It decides nothing about annotations (`store/annotations`): it finds passages by their quotes, and numbers them.
"""

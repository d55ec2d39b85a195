"""The agent card: from the settings and `agent_card.json`, public and extended, signed.

Owns no table.
"""

"""The agent card: made from the settings and `agent_card.json`, public and extended, and signed."""

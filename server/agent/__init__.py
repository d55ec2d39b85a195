"""What an agent does in a turn, and its vocabulary: events, the protocol of models, intents, phases, blocks.

`turn` runs a conversation, `edit` an operation on an artifact, `models` are the models, `loops` are agents with a loop
of their own. It knows no tasks, no callers.
"""

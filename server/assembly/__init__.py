"""The components of a server, made of its settings: what runs tasks (`engine.py`), what stands before it
(`components.py`), and how they start and stop (`lifespan.py`). A setting that concerns one room is read in that room.
"""

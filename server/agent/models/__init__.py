"""Language models behind one protocol (`agent/model.py`): Claude, those that speak OpenAI's protocol, and scripts.

One module imports each provider's SDK. Decisions that need no connection are in separate, pure modules.
"""

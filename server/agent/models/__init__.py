"""Language models behind one protocol (`agent/model.py`): Claude, those that speak OpenAI's protocol, and scripts.

One module imports each provider's SDK. What can be decided without a connection is in modules of its own, and pure.
"""

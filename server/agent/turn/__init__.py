"""A turn of a conversation: rounds of a model call and its tool calls, until an answer has no calls.

`call.py` processes one answer while it arrives; `resume.py` and `pending_calls.py` continue after a crash.
"""

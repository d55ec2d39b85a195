"""Comments and suggestions on passages of artifacts: what they are, their steps, their places in later versions.

It owns no table: the journal stores annotations in the transaction of their entry (`server/tasks`).
"""

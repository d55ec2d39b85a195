"""The tables of accounts: who calls, and which contexts are whose. Times are microseconds since 1970.

Rule 1: no row of `api_keys` is deleted, and none is revoked twice: so the number of rows, and that of revoked ones,
        tell every change (`sql_api_keys.py`), and what a key did can be traced to its user.
Rule 2: of keys and of the tokens of links there are only hashes. A row of `server_secrets` is a secret itself.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, Table

from a2a_canvas.store.sql.database import TextSize
from a2a_canvas.store.sql.tables import Text, incarnation, metadata

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_hash", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("user_name", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),  # null while it is in force
)

shares = Table(
    "shares",
    metadata,
    Column("share_id", Text, primary_key=True),
    Column("context_id", Text, nullable=False),  # the context's key
    Column("owner", Text, nullable=False),
    Column("level", Text, nullable=False),  # the word of a `Level`
    Column("made_at", BigInteger, nullable=False),
    Column("user_name", Text, nullable=False),  # empty for a link
    Column("token_hash", Text, nullable=False),  # empty for a user
    Column("expires_at", BigInteger),  # null for never
    Index("shares_by_context", "context_id"),
    Index("shares_by_user", "user_name"),
    Index("shares_by_token", "token_hash"),
)

SHARE_SIZE = TextSize(*(shares.c[name] for name in ("share_id", "context_id", "owner", "user_name", "token_hash")))

ended_sessions = Table(
    "ended_sessions",  # of browsers, before their time
    metadata,
    Column("user_name", Text, primary_key=True),
    Column("session_id", Text, primary_key=True),  # empty for all of the user that began until then
    Column("ended_at", BigInteger, nullable=False),
)

server_secrets = Table(
    "server_secrets",  # what servers of one database sign with, by what it is for
    metadata,
    Column("name", Text, primary_key=True),
    Column("secret", Text, nullable=False),
    Column("made_at", BigInteger, nullable=False),
)

contexts = Table(
    "contexts",
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("tasks", Integer, nullable=False),  # number of tasks that it ever had
    Column("position", BigInteger, nullable=False),  # of its newest artifact change
    Column("changed_at", BigInteger, nullable=False),
    incarnation(),
)

owned_contexts = Table(
    "owned_contexts",  # what an owner of tasks in a context sees of it
    metadata,
    Column("context_id", Text, primary_key=True),
    Column("owner", Text, primary_key=True),
    Column("name", Text),  # given by the owner; null for none
    Column("request", Text, nullable=False),  # the beginning of its first message
    Column("created_at", BigInteger, nullable=False),
    Column("changed_at", BigInteger, nullable=False),  # when the status of one of its tasks last changed
    Index("owned_contexts_by_owner", "owner", "changed_at", "context_id"),
)

removed_contexts = Table(
    "removed_contexts",  # the ids that users have used (`access.py`, rule 5), without a way back to them
    metadata,
    Column("key_hash", Text, primary_key=True),
)

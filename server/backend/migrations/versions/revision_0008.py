"""API keys, shares of contexts, and secrets that the servers of a database have in common."""

from alembic import op
from sqlalchemy import BigInteger, Column, Integer, Text

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    op.create_table(
        "api_keys",
        Column("key_hash", Text, primary_key=True),
        Column("name", Text, nullable=False),
        Column("user_name", Text, nullable=False),
        Column("made_at", BigInteger, nullable=False),
        Column("revoked_at", BigInteger),
    )
    op.create_table(
        "shares",
        Column("share_id", Text, primary_key=True),
        Column("context_id", Text, nullable=False),
        Column("owner", Text, nullable=False),
        Column("level", Integer, nullable=False),
        Column("made_at", BigInteger, nullable=False),
        Column("user_name", Text, nullable=False),
        Column("token_hash", Text, nullable=False),
        Column("expires_at", BigInteger),
    )
    op.create_index("shares_by_context", "shares", ["context_id"])
    op.create_index("shares_by_user", "shares", ["user_name"])
    op.create_index("shares_by_token", "shares", ["token_hash"])
    op.create_table(
        "server_secrets",
        Column("name", Text, primary_key=True),
        Column("secret", Text, nullable=False),
        Column("made_at", BigInteger, nullable=False),
    )

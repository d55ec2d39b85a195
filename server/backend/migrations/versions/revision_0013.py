"""Hashes of the keys of removed contexts."""

from alembic import op
from sqlalchemy import Column, Text

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table("removed_contexts", Column("key_hash", Text, primary_key=True))

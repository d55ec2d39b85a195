"""Pages are stored as compressed bytes; those of before keep their text, and are deleted with their journals."""

from alembic import op
from sqlalchemy import Column, LargeBinary

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    # A column that may be null rewrites nothing: at once, however large the table is.
    op.add_column("pages", Column("compressed", LargeBinary))

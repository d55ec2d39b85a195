"""How many bytes are kept of each context; what is there already is counted."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text, text

revision = "0012"
down_revision = "0011"

COUNTED = {
    "tasks": ("head", "transcript", "artifacts"),
    "pages": ("entries", "compressed"),
    "versions": ("content", "replacement"),
    "push_configs": ("url", "target", "token", "credentials"),
    "shares": ("share_id", "context_id", "owner", "user_name", "token_hash"),
}
CONTEXTS_AT_ONCE = 200
"""So that no statement takes long: those on PostgreSQL have a time limit."""


def upgrade() -> None:
    op.create_table(
        "kept_bytes", Column("context_id", Text, primary_key=True), Column("bytes", BigInteger, nullable=False)
    )
    connection = op.get_bind()
    size = "length(CAST({} AS BLOB))" if connection.dialect.name == "sqlite" else "octet_length({})"
    sums = " UNION ALL ".join(
        f"SELECT context_id, {' + '.join(f'coalesce({size.format(column)}, 0)' for column in columns)} AS size "
        f"FROM {table} WHERE context_id > :after AND context_id <= :last"
        for table, columns in COUNTED.items()
    )
    count = text(f"INSERT INTO kept_bytes SELECT context_id, sum(size) FROM ({sums}) AS sizes GROUP BY context_id")
    # That of the last of the next contexts; an id is never empty.
    last = text(
        "SELECT max(context_id) FROM "
        "(SELECT context_id FROM contexts WHERE context_id > :after ORDER BY context_id LIMIT :most) AS following"
    )
    after = ""
    while following := connection.scalar(last, {"after": after, "most": CONTEXTS_AT_ONCE}):
        connection.execute(count, {"after": after, "last": following})
        after = following

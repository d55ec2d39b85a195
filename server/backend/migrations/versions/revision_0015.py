"""The levels of shares by their words: a level may come between two others."""

from alembic import op
from sqlalchemy import Column, Text, column, table

revision = "0015"
down_revision = "0014"

WORDS = {1: "read", 2: "edit"}


def upgrade() -> None:
    op.add_column("shares", Column("word", Text))
    shares = table("shares", column("level"), column("word"))
    for number, word in WORDS.items():
        op.execute(shares.update().where(shares.c.level == number).values(word=word))
    op.execute(shares.delete().where(shares.c.word.is_(None)))
    with op.batch_alter_table("shares") as batch:
        batch.drop_column("level")
        batch.alter_column("word", new_column_name="level", existing_type=Text, nullable=False)

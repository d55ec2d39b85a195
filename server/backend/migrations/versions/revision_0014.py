"""An owner's tasks in one state are found without reading the others."""

from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_index("tasks_by_owner_and_state", "tasks", ["owner", "state", "changed_at", "task_id"])

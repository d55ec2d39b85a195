"""What alembic runs for an upgrade: on a connection, in the transaction that it has begun."""

from alembic import context

from a2a_canvas.server.backend.migrations.schema import REVISIONS

context.configure(connection=context.config.attributes["connection"], version_table=REVISIONS, transactional_ddl=True)
context.run_migrations()

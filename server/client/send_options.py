"""What a user of the terminal client chose, and the commands that a user can go on with."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

DEFAULT_URL = "http://127.0.0.1:8000"


@dataclass(frozen=True, slots=True)
class SendOptions:
    """What to send and where.

    `context` goes on with a conversation, `task` answers a task that asked, `json` prints the events as they came,
    `program` is how this program was called, as it is to be typed into a shell.
    """

    text: str
    url: str = DEFAULT_URL
    context: str = ""
    task: str = ""
    json: bool = False
    program: str = "a2a-canvas"

    def command(self, option: str, value: str) -> str:
        """The command that sends a further message to the same server."""
        # Quoted, because the id is the server's and the line is there to be copied into a shell.
        return f'{self.program} send {option} {shlex.quote(value)}{_at(self.url)} "…"'

    def how_to_answer(self, task_id: str) -> str:
        """The line below a question."""
        return f"Answer with: {self.command('--task', task_id)}"

    def how_to_go_on(self, task_id: str, context_id: str) -> tuple[str, ...]:
        """The lines below the word that a task is out of sight, as far as its ids are known."""
        lines = {
            "Add to the task": ("--task", task_id),
            "Go on with the conversation": ("--context", context_id),
        }
        return tuple(f"{text}: {self.command(*where)}" for text, where in lines.items() if where[1])

    def instead_of_task(self) -> str:
        """The line for a task that takes no message."""
        return (
            f"Leave out --task. Use --context {shlex.quote(self.context or 'CONTEXT')} to go on with the conversation."
        )


@dataclass(frozen=True, slots=True)
class Where:
    """The artifacts of a conversation on a server, or one of them.

    `json` prints what the server says as it came, `program` is as in `SendOptions`.
    """

    context: str
    artifact: str = ""
    url: str = DEFAULT_URL
    json: bool = False
    program: str = "a2a-canvas"

    def how_to_look(self) -> str:
        """The line below the word that a task is out of sight."""
        artifact, context = shlex.quote(self.artifact), shlex.quote(self.context)
        return f"See what became of it: {self.program} versions {artifact} --context {context}{_at(self.url)}"


def _at(url: str) -> str:
    return "" if url == DEFAULT_URL else f" --url {shlex.quote(url)}"

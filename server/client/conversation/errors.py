"""The errors of the client.

ClientError          the request failed; exit code 1
  CannotBeDone       the command cannot be run as typed, and nothing was sent; exit code 2
  TaskWaits          the task waits for the user, who cannot answer here; exit code 3
  ConnectionLost     the connection broke while the task was running
  UserInterrupt      Ctrl+C; exit code 130
  NotServed          the server refused to show an artifact
"""

from __future__ import annotations

from typing import ClassVar

from a2a_canvas.server.wire import why_untrusted

WAITS = 3
"""The exit code of a command whose task waits for the user."""
INTERRUPTED = 130
"""The exit code after Ctrl+C, as in shells."""


class ClientError(Exception):
    """A request failed.

    Args:
        text: the line for the user.
        advice: a line for each next step; a command at its end can be copied into a shell.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, text: str, *advice: str) -> None:
        super().__init__(text)
        self.advice = advice


def describe_unreachable(url: object, error: Exception) -> str:
    """The line for a card with an unreachable address, and the missing setting of its server or of the client."""
    says = f"The agent's card leads to {url}"
    if why := why_untrusted(error):
        return f"{says}: {why}"
    return f"{says}, where no server answers: its server sets the address with A2A_CANVAS_PUBLIC_URL"


class CannotBeDone(ClientError):
    """The command cannot be run as typed; nothing was sent."""

    exit_code = 2


class TaskWaits(ClientError):
    """The task waits for something that no message can give, such as a login."""

    exit_code = WAITS


class UserInterrupt(ClientError):
    """The user pressed Ctrl+C; a task that was started continues."""

    exit_code = INTERRUPTED

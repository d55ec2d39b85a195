"""The errors of the client.

ClientError          the request failed; exit code 1
  CannotBeDone       it cannot be done as it was typed, and nothing was sent; exit code 2
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
"""The exit code of a program that was stopped by Ctrl+C, as shells have it."""


class ClientError(Exception):
    """A request failed.

    Args:
        text: the line for the user.
        advice: a line for each thing that the user can do; a command at its end is to be copied into a shell.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, text: str, *advice: str) -> None:
        super().__init__(text)
        self.advice = advice


def describe_unreachable(url: object, error: Exception) -> str:
    """The line for a card whose address cannot be reached, with the setting that its server, or the client, lacks."""
    says = f"The agent's card leads to {url}"
    if why := why_untrusted(error):
        return f"{says}: {why}"
    return f"{says}, where no server answers: its server sets the address with A2A_CANVAS_PUBLIC_URL"


class CannotBeDone(ClientError):
    """What was asked for cannot be done as it was typed; nothing was sent."""

    exit_code = 2


class TaskWaits(ClientError):
    """The task waits for something that no message can give, such as a login."""

    exit_code = WAITS


class UserInterrupt(ClientError):
    """The user pressed Ctrl+C; what had been sent goes on."""

    exit_code = INTERRUPTED

"""`python -m a2a_canvas` is `a2a-canvas`."""

import os
import signal
import sys

from a2a_canvas.server.commands.cli import main as run


def main() -> None:
    if os.getpid() == 1:
        # The kernel drops a signal to the first process of a container that this has no handler for. A server has one
        # once it serves; until then, and for all other commands, this is what the signal does elsewhere.
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    sys.exit(run())


if __name__ == "__main__":
    main()

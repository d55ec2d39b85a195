"""`python -m a2a_canvas` is `a2a-canvas`."""

import sys

from a2a_canvas.server.cli import main as run


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()

"""`python -m server` is `a2a-canvas`."""

import sys

from server.cli import main as run


def main() -> None:
    sys.exit(run())


if __name__ == "__main__":
    main()

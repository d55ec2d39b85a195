"""nginx for the tests of caches.

Without it these tests are skipped, unless the environment variable `TESTS_NEED_NGINX` is set: then they fail.
"""

from __future__ import annotations

import os

import pytest

from bench import nginx

NEEDS_NGINX = "TESTS_NEED_NGINX"


def need_nginx() -> None:
    """Skips the test, or fails it, if nginx is not installed."""
    if missing := nginx.why_not():
        if os.environ.get(NEEDS_NGINX):
            pytest.fail(f"{missing}, and {NEEDS_NGINX} is set")
        pytest.skip(missing)

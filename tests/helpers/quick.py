"""Which cases of a test `make test` takes; `make test-all` takes all of them."""

import pytest


def quick_cases(*cases, rest):
    """Return a test's cases: those that `make test` takes, and the rest."""
    others = [case if isinstance(case, tuple) else (case,) for case in rest]
    return [*cases, *(pytest.param(*case, marks=pytest.mark.full) for case in others)]

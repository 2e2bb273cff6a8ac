"""A command keeps the memory it frees."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Takes and frees 64 MB forty times and prints the page faults: pages of 4 KB would make 655,360.
AGAIN = """
import resource, sys, torch
from propos.cli.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(40):
    torch.empty(2**24).fill_(1)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", AGAIN, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc can be asked")
def test_memory_that_was_freed_is_taken_again_without_fetching_it_anew():
    given_back = _faults("given back")
    if given_back < 10_000:
        pytest.skip("this C library keeps freed memory by itself")
    assert _faults("kept") < given_back / 2

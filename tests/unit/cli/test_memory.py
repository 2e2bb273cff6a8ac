"""A command keeps the memory it frees, and ends in one line where there is too little."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from helpers.awkward import picture
from propos.common.errors import InputError, is_out_of_memory

# Takes and frees 64 MB forty times on two threads and prints the page faults: pages of 4 KB would make 655,360 on each.
AGAIN = """
import resource, sys, threading, torch
from propos.cli.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def work():
    for _ in range(40):
        torch.empty(2**24).fill_(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
other = threading.Thread(target=work)
other.start()
work()
other.join()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def _faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", AGAIN, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only glibc can be asked")
def test_freed_memory_is_reused_without_a_request_to_the_system():
    given_back = _faults("given back")
    if given_back < 10_000:
        pytest.skip("this C library keeps freed memory by itself")
    assert _faults("kept") < given_back / 2


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not hold a process to the limit")
def test_too_little_memory_is_one_line(tmp_path):
    for number in range(40):
        picture(300, 300, 3, seed=number).save(tmp_path / f"{number}.png")
    shell = f'ulimit -v 1000000; exec "{sys.executable}" -m propos inspect "{tmp_path}"'
    environment = {**os.environ, "PROPOS_CACHE": str(tmp_path / "caches")}
    done = subprocess.run(["bash", "-c", shell], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(("propos: out of memory: ", "propos: cannot start a thread: out of memory"))
    assert done.stderr.count("\n") == 1


def test_torchs_own_error_is_known():
    with pytest.raises(RuntimeError) as failed:
        torch.empty(2**48)
    assert is_out_of_memory(failed.value)
    assert is_out_of_memory(torch.OutOfMemoryError("CUDA out of memory"))
    assert not is_out_of_memory(RuntimeError("shapes differ"))
    assert not is_out_of_memory(InputError("can't allocate memory is what the file is called"))

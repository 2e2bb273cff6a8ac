"""Starting commands on several processes with torchrun, over loopback and on ports that the system picks."""

import os
import subprocess
import sys
from pathlib import Path

from helpers.command import Result

TESTS = Path(__file__).parents[1]


def start(*arguments, processes=2, options=("--standalone",), **more):
    """Start torchrun; what it starts has one thread a process."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "GLOO_SOCKET_IFNAME": "lo",
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", "torch.distributed.run", *options, f"--nproc-per-node={processes}"]
    return subprocess.Popen(
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **more,
    )


def finish(process, seconds=300):
    """Wait for torchrun to end; whatever happens, nothing of it lives on."""
    try:
        out, err = process.communicate(timeout=seconds)
    except BaseException:
        process.terminate()  # torchrun ends its processes before it leaves
        process.communicate()
        raise
    return Result(process.returncode, out, err)


def run(*arguments, **options):
    """Run torchrun to its end."""
    return finish(start(*arguments, **options))


def children(process):
    """Return the numbers of the processes that torchrun started."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(number) for number in found]

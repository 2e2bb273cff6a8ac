"""Commands on several processes over loopback: started by torchrun itself, or forked as it would start them."""

import os
import socket
import sys
from pathlib import Path

import torch.distributed as dist

from helpers.command import Result
from helpers.forked import Forked, command

# What is started has one thread a process.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}


def start(*arguments, processes=2, options=("--standalone",), **keywords):
    """Start torchrun, which starts its processes as it always does."""
    flags = [*options, f"--nproc-per-node={processes}"]
    return Forked(_torchrun, *flags, *map(str, arguments), env={**os.environ, **ENVIRONMENT}, **keywords)


def _torchrun(*arguments):
    from torch.distributed.run import main

    sys.argv = ["torchrun", *arguments]
    main()


def finish(process):
    """Wait for torchrun to end."""
    out, err = process.communicate()
    return Result(process.returncode, out, err)


def run(*arguments, **options):
    """Run torchrun to its end."""
    return finish(start(*arguments, **options))


def children(process):
    """Return the numbers of the processes that torchrun started."""
    found = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    return [int(number) for number in found]


def port():
    """Return a port that is free and stays so: below those the system hands out, and unlike other test runs'."""
    for number in range(os.getpid() % 10_000, 10_000):
        with socket.socket() as sock:
            try:
                sock.bind(("127.0.0.1", 20_000 + number))
            except OSError:
                continue
            return 20_000 + number
    raise AssertionError("no port is free")


class Pair:
    """Two processes with the environment that torchrun gives them, and without its watching over them."""

    def __init__(self, function, *arguments, hold=None):
        """Start both; the first stops where `hold` says."""
        self._store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self._store.port), "WORLD_SIZE": "2"}
        place |= {"LOCAL_WORLD_SIZE": "2", "TORCHELASTIC_USE_AGENT_STORE": "True"}
        self.processes = [
            Forked(
                function,
                *map(str, arguments),
                env={**os.environ, **ENVIRONMENT, **place, "RANK": str(rank), "LOCAL_RANK": str(rank)},
                hold=None if rank else hold,
            )
            for rank in range(2)
        ]

    def poll(self):
        """Return a code once one of them has ended."""
        return next((p.poll() for p in self.processes if p.poll() is not None), None)

    def communicate(self):
        """Wait for both and return all they said."""
        said = [process.communicate() for process in self.processes]
        return tuple(map("".join, zip(*said, strict=True)))


def run_pair(*arguments, function=command):
    """Run the command, or another function, on two processes."""
    pair = Pair(function, *arguments)
    out, err = pair.communicate()
    codes = [process.returncode for process in pair.processes]
    return Result(max(codes, key=abs), out, err)

"""Holding a process before a file it is about to write, so that tests stop runs at a known place, not at a time.

As a script it is the `propos` command, held as its first argument says: what torchrun starts in place of `-m propos`.
"""

import fnmatch
import json
import os
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

SCRIPT = Path(__file__)
PATIENCE = 600  # seconds; only a process that hangs is waited for so long
LOOK = 0.005  # seconds between looks


@dataclass(frozen=True)
class Hold:
    """A process stops here and waits: before it opens for writing, renames to, removes or makes what has this name."""

    folder: Path  # where the process says that it has come, and is told to continue
    name: str  # a pattern

    def install(self):
        """Have this process stop there, once."""
        stopped = False

        def look(event, arguments):
            nonlocal stopped
            if not stopped and fnmatch.fnmatchcase(_touched(event, arguments), f"*/{self.name}"):
                stopped = True
                self._wait()

        sys.addaudithook(look)

    def _wait(self):
        (self.folder / "reached").touch()
        for _ in range(int(PATIENCE / LOOK)):
            if (self.folder / "continue").exists():
                return
            time.sleep(LOOK)
        os._exit(70)

    def reached(self, process):
        """Wait until the process is there; it must not end before."""
        wait_for((self.folder / "reached").exists, process)
        assert (self.folder / "reached").exists(), process.communicate()[1]

    def go_on(self):
        """Let the process continue."""
        (self.folder / "continue").touch()

    def as_text(self):
        """Return what the script takes."""
        return json.dumps(asdict(self), default=str)


def _touched(event, arguments):
    """Return the file or folder that is about to be written, made, or removed, as Python announces it."""
    if event == "open" and (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR):
        return str(arguments[0])
    if event in ("os.rename", "os.remove", "os.mkdir"):
        return str(arguments[event == "os.rename"])
    return ""


def wait_for(condition, process):
    """Wait until a condition holds or the process has ended."""
    while not condition() and process.poll() is None:
        time.sleep(LOOK)


def wait_for_reader(pipe, process=None):
    """Wait until somebody reads a pipe, who then waits for us; return our end of it."""
    while process is None or process.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads it yet
            time.sleep(LOOK)
    raise AssertionError("the process ended and nobody had read the pipe")


def main():
    from propos.cli import main

    hold = json.loads(sys.argv.pop(1))
    if os.environ.get("RANK", "0") == "0" and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        Hold(Path(hold["folder"]), hold["name"]).install()
    main()


if __name__ == "__main__":
    main()

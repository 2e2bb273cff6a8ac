"""The errors a person can cause or meet, each one sentence on one line: what, where, what to do."""

from __future__ import annotations

import errno

TYPE_CHECKING = False  # typing takes longer to load than a command takes to hear Ctrl-C
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    Failure = Literal["nan", "memory", "system", "process", "checkpoint"]

EXIT_FAILED, EXIT_INPUT, EXIT_INTERRUPTED = 1, 2, 130
LONGEST = 60  # characters of a value that an error repeats
MOST_NAMED = 3  # runs that an error names


class InputError(ValueError):
    """The person's input is wrong; nothing has been written (exit code 2)."""


def no_such_run(path: object) -> InputError:
    """Return what is said of a run folder that does not exist."""
    latest = _latest_runs(str(path))
    known = f"the latest here: {', '.join(latest)}" if latest else "propos run SOURCE says where it writes"
    return InputError(f"{path}: no such folder; {known}")


def _latest_runs(sought: str) -> list[str]:
    """Return some runs beside the one that is sought, and in runs/."""
    from pathlib import Path

    try:
        found = {file for place in (Path(sought).parent, Path("runs")) for file in place.glob("*/run.json")}
        latest = sorted(found, key=lambda file: -file.stat().st_mtime)
    except (OSError, ValueError):  # a folder that nobody may read, or that goes away meanwhile
        return []
    return [str(file.parent) for file in latest[:MOST_NAMED]]


def refuse_to_overwrite(path: Path, option: str = "-o") -> None:
    """Refuse to write where something is already, by whichever of its names; a link that leads nowhere counts too."""
    if path.is_symlink() or path.exists():
        raise InputError(f"{path}: already exists; refusing to overwrite it: choose another {option}")


def check_ending(path: Path, ending: str) -> None:
    """Refuse a file named as another format than the one that is written; a name without an ending is any."""
    if path.suffix not in ("", ending):
        raise InputError(f"{path}: name the file *{ending}")


class RunFailed(RuntimeError):  # noqa: N818 - reads as the sentence it prints
    """A run broke while running; its last checkpoint is kept and named (exit code 1).

    Programs tell what broke it by the code.
    """

    def __init__(self, sentence: str, code: Failure | None = None) -> None:
        super().__init__(sentence)
        self.code = code


class Interrupted(Exception):  # noqa: N818 - not an error: the run was asked to stop and can go on
    """The person stopped the run; everything is saved and the run resumes (exit code 130)."""


def describe_os_error(error: OSError) -> str:
    """Say what the operating system refused, where, and for a full disk what to do."""
    where = f"{error.filename}: " if error.filename else ""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    return f"{where}{error.strerror or error}" + ("; free some space and try again" if full else "")


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether memory ran out, of the host or of a GPU: torch has an error of its own for the latter alone."""
    words = ("can't allocate memory", "failed to map segment", "std::bad_alloc")
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError | ImportError) and any(each in str(error) for each in words))
    )


def shown(value: object, quoted: bool = True) -> str:
    """Return a value as an error may repeat it: short and on one line; names that read well go without quotes."""
    text = repr(value) if quoted or not str(value).isprintable() else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

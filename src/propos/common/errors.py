"""Errors for people, each one line: what happened, where, what to do."""

from __future__ import annotations

import errno

TYPE_CHECKING = False  # importing typing would delay the handling of Ctrl-C
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    Failure = Literal["nan", "memory", "system", "process", "checkpoint"]

EXIT_FAILED, EXIT_INPUT, EXIT_INTERRUPTED = 1, 2, 130
LONGEST = 60  # characters of a value that an error quotes
MOST_NAMED = 3  # runs that an error names


class InputError(ValueError):
    """The person's input is wrong; nothing has been written (exit code 2)."""


def no_such_run(path: object) -> InputError:
    """Return the error for a run folder that does not exist."""
    latest = _latest_runs(str(path))
    known = f"the latest here: {', '.join(latest)}" if latest else "propos run SOURCE says where it writes"
    return InputError(f"{path}: no such folder; {known}")


def _latest_runs(sought: str) -> list[str]:
    """Return the latest runs in the same folder and in runs/."""
    from pathlib import Path

    try:
        found = {file for place in (Path(sought).parent, Path("runs")) for file in place.glob("*/run.json")}
        latest = sorted(found, key=lambda file: -file.stat().st_mtime)
    except (OSError, ValueError):  # an unreadable folder, or one deleted meanwhile
        return []
    return [str(file.parent) for file in latest[:MOST_NAMED]]


def refuse_to_overwrite(path: Path, option: str = "-o") -> None:
    """Refuse to overwrite an existing path; a broken link counts as existing."""
    if path.is_symlink() or path.exists():
        raise InputError(f"{path}: already exists; refusing to overwrite it: choose another {option}")


def check_ending(path: Path, ending: str) -> None:
    """Refuse a file name with another format's suffix; a name without a suffix is accepted."""
    if path.suffix not in ("", ending):
        raise InputError(f"{path}: name the file *{ending}")


class RunFailed(RuntimeError):  # noqa: N818 - reads as the sentence it prints
    """A run failed; its last checkpoint is kept and named (exit code 1).

    `code` is the cause for programs.
    """

    def __init__(self, sentence: str, code: Failure | None = None) -> None:
        super().__init__(sentence)
        self.code = code


class Interrupted(Exception):  # noqa: N818 - not an error: the run was asked to stop and can be resumed
    """A person stopped the run; everything is saved and the run can be resumed (exit code 130)."""


def describe_os_error(error: OSError) -> str:
    """Describe an error of the operating system, where it happened, and what to do about a full disk."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    name = (error.filename2 if full else None) or error.filename  # of a copy: its target is what is full
    where = f"{name}: " if name else ""
    return f"{where}{error.strerror or error}" + ("; free some space and try again" if full else "")


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether memory ran out, of the host or of a GPU: torch has its own error for a GPU only."""
    words = ("can't allocate memory", "failed to map segment", "std::bad_alloc")
    return (
        isinstance(error, MemoryError)
        or type(error).__name__ == "OutOfMemoryError"
        or (isinstance(error, RuntimeError | ImportError) and any(each in str(error) for each in words))
    )


def shown(value: object, quoted: bool = True) -> str:
    """Return a value as an error quotes it: short and on one line; plain names need no quotes."""
    text = repr(value) if quoted or not str(value).isprintable() else str(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

"""The errors a person can cause or meet, each one sentence: what, where, what to do."""


class InputError(ValueError):
    """The person's input is wrong; nothing has been written (exit code 2)."""


class RunFailed(RuntimeError):  # noqa: N818 - reads as the sentence it prints
    """A run broke while running; its last checkpoint is kept and named (exit code 1)."""


class Interrupted(Exception):  # noqa: N818 - not an error: the run was asked to stop and can go on
    """The person stopped the run; everything is saved and the run resumes (exit code 130)."""

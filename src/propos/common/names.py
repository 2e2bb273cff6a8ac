"""The names of data sets, available without importing the data modules."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from propos.common.errors import InputError

BUILT_IN = ("digits",)
# Those of the catalogue (propos.data.published), which a test compares.
PUBLISHED = (
    "cifar-10", "cifar-20", "stl-10", "imagenet-10", "imagenet-dogs", "tiny-imagenet", "imagenet-1k", "imagenet-50",
    "imagenet-100", "imagenet-200", "cifar-10-lt", "cifar-20-lt", "fashion-mnist", "mnist",
)  # fmt: skip


def nearest(name: str, known: Iterable[str] = PUBLISHED) -> str | None:
    """Return the nearest known name to a misspelt one."""
    base, colon, split = name.lower().replace("_", "-").partition(":")
    near = difflib.get_close_matches(base, [*known, *BUILT_IN], n=1, cutoff=0.75)
    return near[0] + colon + split if near else None


def no_such_source(what: str) -> InputError:
    """Return the error for a source that does not exist; `what` is printable."""
    return InputError(f"{what}: no such file or folder; give a folder of images")

"""More like this: the images that are most like some, or that a classifier of a person's answers ranks first.

The request carries all that the answer depends on, so corrections that are not saved yet count too.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import numpy as np
from jaxtyping import Bool
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from propos.common.errors import InputError
from propos.evaluation.retrieval import highest, rank_by_answers
from propos.runs import Run

MOST_EXAMPLES = 2_000  # images that a request may give of each kind
MOST_FOUND = 1_000
LONGEST_TEXT = 1_000  # letters
_Asked = TypeVar("_Asked", bound=BaseModel)

Rows = list[Annotated[int, Field(ge=0)]]


class Request(BaseModel):
    """Rows of images that are wanted, and of images that are not; `skip` has a bit for each row to leave out."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    yes: Annotated[Rows, Field(min_length=1, max_length=MOST_EXAMPLES)]
    no: Annotated[Rows, Field(max_length=MOST_EXAMPLES)] = []
    skip: str = ""  # base64
    count: Annotated[int, Field(ge=1, le=MOST_FOUND)]


def find_similar(run: Run, content: bytes) -> dict[str, Any]:
    """Return the rows found, best first, with their probabilities where there are images that are not wanted."""
    request = _checked(Request, content, "similar")
    vectors = run.embedding_rows
    if max([*request.yes, *request.no]) >= len(vectors):
        raise InputError(f"similar: the run has {len(vectors):,} images")
    skip = _mask(request.skip, len(vectors))
    direction = rank_by_answers(vectors, np.array(request.yes), np.array(request.no, np.int64), skip)
    rows, scores = highest(vectors, direction, request.count, skip)
    chances = direction.probabilities(scores)
    return {"rows": rows.tolist(), "probabilities": None if chances is None else chances.round(4).tolist()}


class Text(BaseModel):
    """A text that images are searched by."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    text: Annotated[str, Field(min_length=1, max_length=LONGEST_TEXT)]
    count: Annotated[int, Field(ge=1, le=MOST_FOUND)]


def find_text(search: Callable[[str, int], list[int]] | None, content: bytes) -> dict[str, Any]:
    """Return the rows of the images most like a text, best first."""
    request = _checked(Text, content, "text")
    if search is None:
        raise InputError("text: the run's network cannot read")
    return {"rows": search(request.text, request.count), "probabilities": None}


def _checked(kind: type[_Asked], content: bytes, where: str) -> _Asked:
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        raise InputError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _mask(bits: str, images: int) -> Bool[np.ndarray, " N"]:
    """Return which rows are left out."""
    try:
        packed = np.frombuffer(base64.b64decode(bits, validate=True), np.uint8)
    except (binascii.Error, ValueError):
        raise InputError("similar: skip: not base64") from None
    mask = np.zeros(images, dtype=bool)
    given = np.unpackbits(packed, bitorder="little")[:images]
    mask[: len(given)] = given
    return mask

"""The schemas of a run folder's text files: run.json, history.jsonl, suggestion.json and skipped.csv."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from propos.common.errors import InputError, shown
from propos.common.plain import parse_json, read_text
from propos.common.spreadsheets import unguarded

SCHEMA = 3
MOST_LISTED = 1_000_000_000  # bytes of history.jsonl and skipped.csv, which grow with the run

Finite = Annotated[float, Field(allow_inf_nan=False)]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=0)]
Record = dict[str, Any]  # a line of the history
Checked = TypeVar("Checked", bound=BaseModel)


class _Part(BaseModel):
    """Base of all schemas: wrong types are refused, unknown keys of later versions are kept."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, populate_by_name=True)


class SourceInfo(_Part):
    """The images of a run."""

    root: str | None = None
    name: str | None = None
    images: Whole | None = None
    fingerprint: str | None = None
    streamed: bool = False


class StartInfo(_Part):
    """The pretrained network that a run used, and the origin of its weights."""

    network: str
    sha256: str | None = None
    seen: str = "unknown"
    licence: str = "unknown"


class RunInfo(_Part):
    """The content of run.json."""

    schema_number: Literal[3] = Field(default=3, alias="schema")
    status: Literal["running", "finished", "interrupted", "failed"]
    propos: str | None = None
    torch: str | None = None
    command: str | None = None
    method: str | None = None  # in words
    started: str | None = None
    seconds: NotNegative = 0.0
    processor_seconds: NotNegative = 0.0  # of the process that trains, all its threads
    memory: Whole | None = None  # peak memory in bytes
    device: Literal["cpu", "cuda", "mps"] = "cpu"
    threads: Whole | None = None
    processes: Whole = 1
    job: str | None = None
    machine: str | None = None
    seed: Whole | None = None
    source: SourceInfo = SourceInfo()
    start: StartInfo | None = None
    plan: str | None = None  # the hash of the plan
    failure: str | None = None  # the code of what went wrong
    earlier: str | None = Field(default=None, alias="from")  # the run that this one continues

    def plain(self) -> dict[str, Any]:
        """Return it as run.json holds it."""
        return self.model_dump(by_alias=True, exclude_unset=True) | {"schema": self.schema_number}


class _Warning(_Part):
    code: str
    text: str


def _none_if_empty(given: Any) -> Any:
    """Return None for the empty measures of an epoch without an E-step."""
    return None if given == {} else given


class Measures(_Part):
    """The measures of an E-step; scores against labels are extra keys."""

    __pydantic_extra__: dict[str, Finite]

    n_clusters: Whole
    uniformity_std: NotNegative
    uniformity_reference: Annotated[float, Field(gt=0.0, allow_inf_nan=False)]
    imbalance_ratio: NotNegative
    smallest_cluster: Whole
    largest_cluster: Whole
    churn: NotNegative | None = None


class _Line(_Part):
    """A line of history.jsonl; numbers that do not apply are null."""

    epoch: Whole
    stage: str | None = None
    losses: dict[str, Finite | None]
    rates: dict[str, Finite | None]
    measures: Annotated[Measures | None, BeforeValidator(_none_if_empty)]
    warnings: list[_Warning] = []
    seconds: dict[str, Finite]


class Suggestion(_Part):
    """The content of suggestion.json: every number of clusters tried, their scores, and the choice."""

    range: Annotated[list[Whole], Field(min_length=1)]
    scores: dict[str, list[Finite]]
    chosen: Whole
    why: str

    @model_validator(mode="after")
    def _one_score_a_number(self) -> Suggestion:
        if any(len(values) != len(self.range) for values in self.scores.values()):
            raise ValueError("give one score for each number of range")
        return self


def read_info(path: Path) -> RunInfo:
    """Read run.json."""
    value = parse_json(read_text(path), str(path))
    if not isinstance(value, dict):
        raise InputError(f"{path}: cannot be read: not a table of keys")
    _check_schema(value.get("schema"), value.get("propos"), path)
    return checked(RunInfo, value, str(path))


def read_history(run: Path) -> list[Record]:
    """Read the history of a run folder, one record an epoch; none where nothing was written yet."""
    path = run / "history.jsonl"
    if not path.exists():
        return []
    records: list[Record] = []
    for number, text in enumerate(read_text(path, MOST_LISTED).splitlines(), start=1):
        where = f"{path}: line {number}"
        record = parse_json(text, where)
        checked(_Line, record, where)
        records.append(record)
    return records


def read_suggestion(path: Path) -> Suggestion | None:
    """Read how the number of clusters was suggested, if it was."""
    return checked(Suggestion, parse_json(read_text(path), str(path)), str(path)) if path.exists() else None


def read_skipped(path: Path) -> list[tuple[str, str]]:
    """Read which files the run left out, and why; nothing where it left out none."""
    if not path.exists():
        return []
    try:
        rows = list(csv.reader(io.StringIO(read_text(path, MOST_LISTED), newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"{path}: cannot be read as CSV: {error}") from None
    if rows[:1] != [["image", "reason"]]:
        raise InputError(f"{path}: its first line is not image,reason")
    for number, row in enumerate(rows):
        if len(row) != 2:
            raise InputError(f"{path}: row {number} has {len(row)} columns, not image,reason")
    return [(unguarded(image), unguarded(reason)) for image, reason in rows[1:]]


def checked(kind: type[Checked], value: Any, where: str) -> Checked:
    """Check plain values against a schema; raise InputError that names the wrong key."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        key = shown(".".join(str(part) for part in first["loc"]), quoted=False)
        problem = first["msg"].removeprefix("Value error, ")
        if first["type"] == "missing":
            raise InputError(f"{where}: has no {key}") from None
        raise InputError(f"{where}: {key + ' = ' if key else ''}{shown(first['input'])}: {problem}") from None


def _check_schema(schema: Any, version: Any, path: Path) -> None:
    if isinstance(schema, bool) or not isinstance(schema, int):
        raise InputError(f"{path}: schema = {shown(schema)}: not a number: this is not a propos run")
    if schema == SCHEMA:
        return
    unknown = "a newer propos" if schema > SCHEMA else "an older propos"
    writer = f"propos {version}" if isinstance(version, str) else unknown
    advice = "upgrade propos" if schema > SCHEMA else "run it again with this version"
    raise InputError(
        f"{path.parent}: was written by {writer} in another format (schema {schema}; this one reads {SCHEMA}): {advice}"
    )

"""The paper's numbers, as it prints them: percent, with a standard deviation where it gives one."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any


@dataclass(frozen=True)
class PaperNumber:
    """A number of the paper."""

    value: float
    sd: float | None = None


@cache
def paper() -> dict[str, Any]:
    """Return the paper's tables by id, a list of rows each."""
    text = (resources.files("propos.study.reproduce") / "paper.json").read_text(encoding="utf-8")
    tables: dict[str, Any] = json.loads(text)
    return tables


def methods_in(table: str) -> list[str]:
    """Return the methods of a table, in its order."""
    return [str(row["method"]) for row in paper()[table]]


def paper_number(table: str, method: str, column: str, score: str) -> PaperNumber | None:
    """Return what a table prints for a method, or nothing where it prints none."""
    for row in paper()[table]:
        if row["method"] == method and isinstance(row.get(column), dict):
            return parse_number(row[column].get(score))
    return None


def parse_number(value: Any) -> PaperNumber | None:
    """Read a number as the tables hold it: alone, or with its standard deviation."""
    if value is None:
        return None
    return PaperNumber(float(value[0]), float(value[1])) if isinstance(value, list) else PaperNumber(float(value))

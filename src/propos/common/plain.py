"""Plain values from untrusted YAML and JSON, limited in size, nesting and numbers."""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from propos.common.errors import InputError

MOST_BYTES = 100_000  # settings need a few thousand
DEEPEST = 20
LARGEST = 2**63  # digits of an integer


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """Read a text file; an error says why it cannot be read."""
    try:
        if path.exists() and not path.is_file():  # a pipe or a device may never end
            raise InputError(f"{path}: cannot be read: not a file")
        if path.stat().st_size > most:
            raise InputError(f"{path}: cannot be read: it is larger than {most:,} bytes")
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: cannot be read: byte {error.start} is not UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def parse_json(text: str, where: str) -> Any:
    """Parse JSON; `where` names it in errors."""
    try:
        value = json.loads(text)
    except RecursionError:
        raise InputError(f"{where}: cannot be read: nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where}: cannot be read: {error}") from None
    _check(value, where)
    return value


def parse_yaml(text: str, where: str) -> Any:
    """Parse YAML without anchors, which could expand a small text; `where` names it in errors."""
    if len(text) > MOST_BYTES:
        raise InputError(f"{where}: cannot be read: it is longer than {MOST_BYTES:,} characters")
    try:
        value = yaml.load(text, _Loader)  # a restricted SafeLoader
    except (yaml.YAMLError, ValueError) as error:
        raise InputError(f"{where}: not valid YAML: {' '.join(str(error).split())}") from None
    _check(value, where)
    return value


class _Loader(yaml.SafeLoader):
    """The safe loader, without anchors and with limits."""

    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Compose a node; refuse aliases and deep nesting."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            raise yaml.YAMLError(f"anchors and aliases (&, *) are not used here: line {event.start_mark.line + 1}")
        if self.depth > DEEPEST:
            raise yaml.YAMLError(f"nested more than {DEEPEST} levels deep")
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """Construct a mapping; refuse repeated keys."""
        made = super().construct_mapping(node, deep)
        if len(made) < len(node.value):
            raise yaml.YAMLError(f"a key is given twice: line {node.start_mark.line + 1}")
        return made


def _check(value: Any, where: str, depth: int = 0) -> None:
    if depth > DEEPEST:
        raise InputError(f"{where}: cannot be read: nested more than {DEEPEST} levels deep")
    if isinstance(value, int) and not -LARGEST <= value < LARGEST:
        raise InputError(f"{where}: cannot be read: a whole number in it has too many digits")
    inside = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | set) else ()
    for each in inside:
        _check(each, where, depth + 1)

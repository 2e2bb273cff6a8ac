"""A summary of a folder's images from their headers alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path

from propos.data.files.content import EDGE, content_hash
from propos.data.files.entry import Entry, Skipped
from propos.data.files.headers import Header, Headers, read_headers
from propos.data.files.scan import What, read_entries, scan


@dataclass(frozen=True)
class Survey:
    """Counts, sizes, colours, faults and exact duplicates of the images a person names."""

    root: Path
    headers: list[Header]
    skipped: list[Skipped]
    formats: dict[str, int]  # the commonest first
    median_width: float
    median_height: float
    common_size: tuple[int, int] | None  # width, height, when all images share it
    channels: int  # 1 when all images are greyscale, else 3
    duplicates: list[list[str]]  # names of images with the very same bytes, a list for each such content

    def __len__(self) -> int:
        return len(self.headers)


def survey(what: What | Headers) -> Survey:
    """Read every header, unless that is done, and compare whole contents only where sizes and edges agree."""
    headers = what if isinstance(what, Headers) else read_headers(scan(what))
    width, height = headers.median_size
    return Survey(
        root=headers.scan.root,
        headers=headers.headers,
        skipped=headers.scan.skipped,
        formats=dict(Counter(header.entry.kind for header in headers.headers).most_common()),
        median_width=width,
        median_height=height,
        common_size=headers.common_size,
        channels=headers.channels,
        duplicates=exact_duplicates(headers.scan.images),
    )


def exact_duplicates(entries: Iterable[Entry]) -> list[list[str]]:
    """Group the images with the very same bytes."""
    alike = _groups(entries, lambda entry: (entry.size, entry.digest))
    decided = [group for group in alike if group[0].size <= 2 * EDGE and group[0].member is None]
    open_cases = [entry for group in alike if group not in decided for entry in group]
    hashed, _ = read_entries(open_cases, lambda entry: (entry, content_hash(entry)))
    hashes = {entry.name: value for entry, value in hashed}
    decided += _groups((entry for entry, _ in hashed), lambda entry: hashes[entry.name])
    return sorted([entry.name for entry in group] for group in decided)


def _groups(entries: Iterable[Entry], key: Callable[[Entry], Hashable]) -> list[list[Entry]]:
    groups: dict[Hashable, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[key(entry)].append(entry)
    return [group for group in groups.values() if len(group) > 1]

"""File and folder names that are valid on Linux, macOS and Windows."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 120  # bytes: room for a mark behind it, and for the folders before it
_FORBIDDEN = re.compile('[<>:"/\\\\|?*\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])( *\..*)?", re.IGNORECASE)


def safe_name(text: str) -> str:
    """Return a valid name that is as close to the text as possible."""
    name = _FORBIDDEN.sub("_", unicodedata.normalize("NFC", text)).strip().rstrip(". ")
    if not name or name.startswith(".") or _RESERVED.fullmatch(name):
        name = f"_{name}"
    stem, dot, ending = name.rpartition(".")
    if not stem or len(ending) > 10:
        stem, dot, ending = name, "", ""
    room = LONGEST - len(f"{dot}{ending}".encode())
    return stem.encode()[:room].decode(errors="ignore").rstrip(". ") + dot + ending


class Distinct:
    """Names that are unique even on case-insensitive file systems."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def __call__(self, text: str, mark: int) -> str:
        """Return a valid name that was not used before, with a mark if needed."""
        name = safe_name(text)
        stem, dot, ending = name.rpartition(".")
        stem, ending = (stem, dot + ending) if stem else (name, "")
        tried, more = name, 0
        while tried.casefold() in self._taken:
            tried = f"{stem} ({mark}{f'-{more}' if more else ''}){ending}"
            more += 1
        self._taken.add(tried.casefold())
        return tried

r"""File names as text that any table can hold.

A file's name is bytes, and need not be UTF-8. In tables, a byte that is not UTF-8 and a control character of ASCII are
written `\xNN`; a lone surrogate (Windows), other control characters and those that are not seen or turn the direction
of writing `\uNNNN`; and a backslash itself `\\`. All other names stay as they are. Every backslash thus begins an
escape, and `unescape_name` gives the very file name back.
"""

from __future__ import annotations

import re

# Joiners (U+200C, U+200D) stay: Persian words and many emoji are written with them.
_UNSEEN = "\x80-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
_AWKWARD = re.compile(f"[\\\\\x00-\x1f\x7f{_UNSEEN}\ud800-\udfff]")
_ESCAPED = re.compile(r"\\(?:\\|x([0-9a-f]{2})|u([0-9a-f]{4}))")
_BYTES = 0xDC00  # Python reads the byte 0xNN of a name that is not UTF-8 as the surrogate U+DCNN


def escape_name(name: str) -> str:
    """Write a file name as valid, one-line UTF-8."""
    return _AWKWARD.sub(_escape, name)


def unescape_name(text: str) -> str:
    """Return the file name that `escape_name` wrote so."""
    return _ESCAPED.sub(_unescape, text)


def _escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if match[0] == "\\":
        return "\\\\"
    if code < 0x80 or 0x80 <= code - _BYTES <= 0xFF:
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}"


def _unescape(match: re.Match[str]) -> str:
    byte, surrogate = match[1], match[2]
    if byte is not None:
        code = int(byte, 16)
        return chr(code if code < 0x80 else _BYTES + code)
    return chr(int(surrogate, 16)) if surrogate is not None else "\\"

"""Names of images as the page stores them: read byte by byte, as `web/src/names.ts` does."""

import base64


def spelt_out(packed):
    """Return the names of a list that `pack_names` wrote."""
    left, before, names = base64.b64decode(packed["base64"]), b"", []
    while left:
        rest, _, after = left[1:].partition(b"\n")
        before = before[: left[0]] + rest
        names.append(before.decode())
        left = after
    return names

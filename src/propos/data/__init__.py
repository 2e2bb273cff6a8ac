"""Sources: where images come from, as batches of uint8."""

from propos.data.arrays import ArraySource, from_array
from propos.data.open import BUILT_IN, open_source
from propos.data.source import Source, distinct_images, fingerprint, pixel_statistics

__all__ = [
    "BUILT_IN",
    "ArraySource",
    "Source",
    "distinct_images",
    "fingerprint",
    "from_array",
    "open_source",
    "pixel_statistics",
]

"""Sources: where images come from, as batches of uint8."""

from propos.data.arrays import ArraySource, from_array
from propos.data.benchmarks import CATALOGUE, Benchmark, MissingData, benchmark, data_root
from propos.data.entry import Entry, Scan, Skipped
from propos.data.folder import FolderSource, StreamedSource, open_folder, open_streamed
from propos.data.found import Found, Keeping
from propos.data.limit import refusal
from propos.data.names import escape_name, unescape_name
from propos.data.open import (
    BUILT_IN,
    What,
    cache_side,
    find_configured,
    find_source,
    is_array,
    is_benchmark,
    is_named,
    open_source,
)
from propos.data.scan import scan
from propos.data.source import (
    Source,
    Statistics,
    distinct_images,
    expect,
    fingerprint,
    pixel_statistics,
    readable,
    using,
)
from propos.data.store import CacheInfo, cache_folder, clean_caches, list_caches
from propos.data.survey import Survey, survey

__all__ = [
    "BUILT_IN",
    "CATALOGUE",
    "ArraySource",
    "Benchmark",
    "CacheInfo",
    "Entry",
    "FolderSource",
    "Found",
    "Keeping",
    "MissingData",
    "Scan",
    "Skipped",
    "Source",
    "Statistics",
    "StreamedSource",
    "Survey",
    "What",
    "benchmark",
    "cache_folder",
    "cache_side",
    "clean_caches",
    "data_root",
    "distinct_images",
    "escape_name",
    "expect",
    "find_configured",
    "find_source",
    "fingerprint",
    "from_array",
    "is_array",
    "is_benchmark",
    "is_named",
    "list_caches",
    "open_folder",
    "open_source",
    "open_streamed",
    "pixel_statistics",
    "readable",
    "refusal",
    "scan",
    "survey",
    "unescape_name",
    "using",
]

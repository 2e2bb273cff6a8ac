"""Sources of images, as batches of uint8.

`open` turns a path or name into a source. Image files are found and their headers read (`files/`), decoded
(`decoding/`), cached (`cache/`) and served by `folder`; arrays are served by `arrays`; published sets (`published/`)
are read by name. `source` defines the interface.
"""

from propos.data.arrays import ArraySource, from_array
from propos.data.cache.index import IndexFiles
from propos.data.cache.limit import refusal
from propos.data.cache.store import CacheInfo, cache_folder, clean_caches, list_caches, no_cache
from propos.data.colours import without_colours
from propos.data.features import Features, cached_features, discard_features, features_cached, store_features
from propos.data.files.classes import FolderLabels, folder_labels
from propos.data.files.entry import Entry, Skipped
from propos.data.files.names import escape_name, unescape_name
from propos.data.files.scan import Scan, scan
from propos.data.files.survey import Survey, survey
from propos.data.folder import FolderSource, StreamedSource, open_folder, open_streamed
from propos.data.open import (
    What,
    cache_side,
    find_configured,
    find_source,
    is_array,
    is_benchmark,
    is_named,
    open_source,
)
from propos.data.photographs import looks_photographic
from propos.data.published import CATALOGUE, Benchmark, MissingData, benchmark, data_root
from propos.data.sample import Sample
from propos.data.selection import Selection, select_names, select_some
from propos.data.source import (
    Files,
    Source,
    Statistics,
    closing_source,
    distinct_images,
    evenly_spaced,
    fingerprint,
    image_digests,
    pixel_statistics,
    positions_not_in,
    prefetch,
    readable,
    upright,
)
from propos.data.unopened import CachePolicy, UnopenedSource

__all__ = [
    "CATALOGUE",
    "ArraySource",
    "Benchmark",
    "CacheInfo",
    "CachePolicy",
    "Entry",
    "Features",
    "Files",
    "FolderLabels",
    "FolderSource",
    "IndexFiles",
    "MissingData",
    "Sample",
    "Scan",
    "Selection",
    "Skipped",
    "Source",
    "Statistics",
    "StreamedSource",
    "Survey",
    "UnopenedSource",
    "What",
    "benchmark",
    "cache_folder",
    "cache_side",
    "cached_features",
    "clean_caches",
    "closing_source",
    "data_root",
    "discard_features",
    "distinct_images",
    "escape_name",
    "evenly_spaced",
    "features_cached",
    "find_configured",
    "find_source",
    "fingerprint",
    "folder_labels",
    "from_array",
    "image_digests",
    "is_array",
    "is_benchmark",
    "is_named",
    "list_caches",
    "looks_photographic",
    "no_cache",
    "open_folder",
    "open_source",
    "open_streamed",
    "pixel_statistics",
    "positions_not_in",
    "prefetch",
    "readable",
    "refusal",
    "scan",
    "select_names",
    "select_some",
    "store_features",
    "survey",
    "unescape_name",
    "upright",
    "without_colours",
]

"""One strict tree of settings."""

from propos.config.sections import (
    VIEW_PRESETS,
    ContrastSettings,
    EstepSettings,
    NetworkSettings,
    PclSettings,
    PixelSettings,
    PslSettings,
    PullSettings,
    StartSettings,
    StrongSettings,
    TrainSettings,
    ViewSettings,
)
from propos.config.tree import (
    Config,
    from_yaml,
    keys,
    parse,
    parse_assignment,
    parse_assignments,
    parse_clusters,
)

__all__ = [
    "VIEW_PRESETS",
    "Config",
    "ContrastSettings",
    "EstepSettings",
    "NetworkSettings",
    "PclSettings",
    "PixelSettings",
    "PslSettings",
    "PullSettings",
    "StartSettings",
    "StrongSettings",
    "TrainSettings",
    "ViewSettings",
    "from_yaml",
    "keys",
    "parse",
    "parse_assignment",
    "parse_assignments",
    "parse_clusters",
]

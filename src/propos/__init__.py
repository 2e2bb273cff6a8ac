"""Turn a folder of unlabelled images into reviewed labels: deep clustering with ProPos.

The public names are resolved when first used, so that importing the package never imports torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from propos.clustering.estimator import SphericalKMeans
    from propos.estimator import ProPos

__version__ = "0.1.0"
__all__ = ["ProPos", "SphericalKMeans", "__version__"]

_HOMES = {"ProPos": "propos.estimator", "SphericalKMeans": "propos.clustering.estimator"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'propos' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

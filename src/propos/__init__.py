"""Group unlabelled images by what they show: deep clustering with ProPos.

The public names are resolved when first used, so that importing the package never imports torch.
"""

from __future__ import annotations

# Not from typing, which takes longer to load than the rest of this: a command hears Ctrl-C after it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from propos.cli.run_function import run
    from propos.clustering.estimator import SphericalKMeans
    from propos.runner.estimator import ProPos

__version__ = "0.1.0"
__all__ = ["ProPos", "SphericalKMeans", "__version__", "run"]

_HOMES = {
    "ProPos": "propos.runner.estimator",
    "SphericalKMeans": "propos.clustering.estimator",
    "run": "propos.cli.run_function",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'propos' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

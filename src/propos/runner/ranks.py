"""Runs on several processes: rank 0 plans the run, the other ranks follow it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch

from propos.common.errors import EXIT_FAILED, EXIT_INTERRUPTED, InputError, Interrupted, RunFailed
from propos.config import Config, from_yaml
from propos.data import (
    CachePolicy,
    IndexFiles,
    Skipped,
    Source,
    StreamedSource,
    find_configured,
    fingerprint,
)
from propos.distributed import (
    all_gather_texts,
    any_process,
    broadcast_bytes,
    first_process_failed,
    is_lost_process,
    local_rank,
    rank,
    receive_message,
    report_ready,
    send_message,
    wait_for_first_process,
    wait_until_all_ready,
    world_size,
)
from propos.runner.progress import Stopping
from propos.runner.sources import opened
from propos.training import Silent, choose_device, estimate_seconds, train

Work = Literal["estimate", "train"]


def announce(work: Work, config: Config, source: Source, device: torch.device) -> None:
    """Send the work and its settings to the other ranks, and wait until they have opened the images."""
    if world_size() == 1:
        return
    if config.source is None:
        raise InputError("several processes cannot share images that are in the memory of one: give a file or a folder")
    words = {
        "work": work,
        "config": config.to_yaml(),
        "device": device.type,
        "channels": source.channels,
        "keep": "stream" if isinstance(source, StreamedSource) else "build",
        "fingerprint": fingerprint(source),
    }
    send_message(json.dumps(words))
    share_index(config.source)
    wait_until_all_ready()


def share_index(what: str | Path) -> None:
    """Store the first process's index of the images on machines that have none, so that they open no file for it."""
    index = IndexFiles(what)
    lacking, known = any_process(local_rank() == 0 and not index.exist(), rank() == 0 and index.exist())
    if not (lacking and known):
        return
    parts = [broadcast_bytes(part) or b"" for part in (index.read() if rank() == 0 else (None, None))]
    if local_rank() == 0 and not index.exist():
        index.write(*parts)
    any_process(False)  # every machine has written it


def estimate(config: Config, source: Source, device: torch.device) -> float:
    """Return the seconds that training will take on all processes."""
    announce("estimate", config, source, device)
    return estimate_seconds(config, source, device)


def join_skipped(source: Source) -> None:
    """Send rank 0 the images that other ranks could not decode."""
    if world_size() == 1 or not isinstance(source, StreamedSource):
        return
    known = {skipped.path for skipped in source.skipped}
    for text in all_gather_texts(json.dumps([(skipped.path, skipped.reason) for skipped in source.skipped])):
        for path, reason in json.loads(text):
            if path not in known:
                known.add(path)
                source.skipped.append(Skipped(path, reason))


def follow_first_process(data: Path | None, stopping: Stopping) -> None:
    """Do the work that rank 0 announces until training ends; `data` is the folder of data sets on this machine."""
    with following_first_process():
        while _do(json.loads(receive_message()), data, stopping) != "train":
            pass


@contextmanager
def following_first_process() -> Iterator[None]:
    """Leave the block together with rank 0, which writes the results and reports what happens to all processes."""
    if rank() == 0:
        yield
        return
    try:
        yield
        wait_for_first_process()  # it still writes results and a page
    except Interrupted:
        wait_for_first_process()  # it writes the checkpoint: torchrun ends all processes when one ends
        sys.exit(EXIT_INTERRUPTED)
    except KeyboardInterrupt:
        sys.exit(EXIT_INTERRUPTED)
    except InputError as error:
        raise InputError(f"process {rank()}: {error}") from None
    except (RunFailed, OSError) as error:
        # A failure of all processes, such as NaN, is reported by rank 0.
        if first_process_failed():
            sys.exit(EXIT_FAILED)
        raise RunFailed(f"process {rank()}: {error}") from None
    except RuntimeError as error:
        if not is_lost_process(error):
            raise
        sys.exit(EXIT_FAILED)  # the process that ended first reported the reason


def _do(words: dict[str, str], data: Path | None, stopping: Stopping) -> str:
    config = from_yaml(words["config"], "the first process's settings")
    assert config.source is not None
    share_index(config.source)
    device = choose_device(words["device"])
    unopened = find_configured(config, data)
    keep: CachePolicy = "stream" if words["keep"] == "stream" else "build"
    with opened(unopened, config, int(words["channels"]), keep) as source:
        if fingerprint(source) != words["fingerprint"]:
            raise InputError(f"{config.source}: contains other images here than on the first process's machine")
        report_ready()
        with stopping() as stop:
            if words["work"] == "estimate":
                estimate_seconds(config, source, device)
            else:
                train(config, source, device, Silent(), None, stop)
                join_skipped(source)
    return words["work"]

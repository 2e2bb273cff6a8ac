"""Comparison of a run that was stopped with one that was not."""

import json

import numpy as np
import pyarrow.parquet

from helpers.small import without_times


def results(out):
    """Return all that must be the same to the bit."""
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    weights = (out / "model.safetensors").read_bytes()
    table = pyarrow.parquet.read_table(out / "clusters.parquet").to_pylist()
    return weights, np.load(out / "embeddings.npy").tobytes(), table, without_times(history)


def checkpoints(out):
    return {path.name for path in (out / "checkpoint").glob("*.safetensors")}

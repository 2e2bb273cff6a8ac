"""Published data sets, read by name from their official layouts under one data root."""

from propos.data.benchmarks.benchmark import Benchmark, Download, data_root
from propos.data.benchmarks.catalogue import CATALOGUE, benchmark, named, nearest
from propos.data.benchmarks.layout import MissingData

__all__ = ["CATALOGUE", "Benchmark", "Download", "MissingData", "benchmark", "data_root", "named", "nearest"]

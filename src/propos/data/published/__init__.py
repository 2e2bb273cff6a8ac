"""Published data sets, read by name from their official layouts under one data root."""

from propos.data.published.benchmark import Benchmark, Download, data_root
from propos.data.published.catalogue import CATALOGUE, benchmark, named, nearest
from propos.data.published.layout import MissingData

__all__ = ["CATALOGUE", "Benchmark", "Download", "MissingData", "benchmark", "data_root", "named", "nearest"]

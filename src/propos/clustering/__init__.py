"""Clustering of arrays; knows nothing of networks."""

from propos.clustering.concentration import concentrations
from propos.clustering.kmeans import Clustering, assign, spherical_kmeans
from propos.clustering.matching import churn, stable_numbers

__all__ = ["Clustering", "assign", "churn", "concentrations", "spherical_kmeans", "stable_numbers"]

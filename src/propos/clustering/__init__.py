"""Clustering of arrays; knows nothing of networks."""

from propos.clustering.kmeans import Clustering, assign, spherical_kmeans
from propos.clustering.matching import churn, stable_numbers

__all__ = ["Clustering", "assign", "churn", "spherical_kmeans", "stable_numbers"]

"""Clustering of arrays, independent of networks."""

from propos.clustering.autopropos import suggest_by_autoencoders
from propos.clustering.choice import choose_clusters
from propos.clustering.concentration import concentrations
from propos.clustering.inverted_file import nearest_neighbours
from propos.clustering.kmeans import assign, spherical_kmeans
from propos.clustering.lloyd import Clustering
from propos.clustering.matching import churn, stable_numbers
from propos.clustering.neighbour_averages import start_from_averages, starting_sample
from propos.clustering.neighbours import nearest_in_blocks
from propos.clustering.points import spans
from propos.clustering.separating_prototypes import are_uneven, hold
from propos.clustering.suggestion import Suggestion, sample_positions, suggest_clusters
from propos.clustering.whitening import whitened

# By the setting `suggest.by`.
SUGGEST = {"stability": suggest_clusters, "autopropos": suggest_by_autoencoders}

__all__ = [
    "SUGGEST",
    "Clustering",
    "Suggestion",
    "are_uneven",
    "assign",
    "choose_clusters",
    "churn",
    "concentrations",
    "hold",
    "nearest_in_blocks",
    "nearest_neighbours",
    "sample_positions",
    "spans",
    "spherical_kmeans",
    "stable_numbers",
    "start_from_averages",
    "starting_sample",
    "suggest_clusters",
    "whitened",
]

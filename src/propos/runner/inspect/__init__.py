"""A look at a source before training: what is in it, what would be trained, and what its views look like."""

from propos.runner.inspect.overview import ESTIMATE_CLUSTERS, Overview, look
from propos.runner.inspect.pictures import draw_views_of

__all__ = ["ESTIMATE_CLUSTERS", "Overview", "draw_views_of", "look"]

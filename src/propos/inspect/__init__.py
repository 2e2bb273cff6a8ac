"""A look at a source before training: what is in it, what would be trained, and what its views look like."""

from propos.inspect.overview import ESTIMATE_CLUSTERS, Overview, look
from propos.inspect.pictures import draw_views_of

__all__ = ["ESTIMATE_CLUSTERS", "Overview", "draw_views_of", "look"]

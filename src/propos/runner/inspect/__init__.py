"""A look at a source before training: its images, the run that would be made of it, and a picture of its views."""

from propos.runner.inspect.overview import ESTIMATE_CLUSTERS, Overview, overview
from propos.runner.inspect.pictures import draw_views_of

__all__ = ["ESTIMATE_CLUSTERS", "Overview", "draw_views_of", "overview"]

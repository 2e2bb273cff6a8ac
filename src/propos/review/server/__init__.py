"""A local server of a run's page, which saves corrections as they are made."""

from propos.review.server.arriving import Arriving
from propos.review.server.serving import serve

__all__ = ["Arriving", "serve"]

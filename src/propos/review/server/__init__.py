"""A run's page on this machine alone, with corrections saved as they are made."""

from propos.review.server.serving import serve

__all__ = ["serve"]

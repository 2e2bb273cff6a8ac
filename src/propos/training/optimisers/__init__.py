"""Optimisers that torch does not have, and parameter groups."""

from propos.training.optimisers.groups import exempt_vectors
from propos.training.optimisers.lars import Lars

__all__ = ["Lars", "exempt_vectors"]

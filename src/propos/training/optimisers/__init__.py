"""Optimisers that torch does not have, and groups of parameters for any."""

from propos.training.optimisers.groups import exempt_vectors
from propos.training.optimisers.lars import Lars

__all__ = ["Lars", "exempt_vectors"]

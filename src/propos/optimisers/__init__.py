"""Optimisers that torch does not have, and groups of parameters for any."""

from propos.optimisers.groups import exempt_vectors
from propos.optimisers.lars import Lars

__all__ = ["Lars", "exempt_vectors"]

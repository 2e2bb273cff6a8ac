"""Points as unit vectors: rows of any array, normalised a chunk at a time, in one process or several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from propos.common.errors import InputError
from propos.distributed import all_gather, rank, sum_over_processes

CHUNK_VALUES = 2**21  # rows and their cosines of one chunk, in values: 8 MB of float32 stay within the cache
PRODUCT_VALUES = 2**23  # cosines at a time with many columns: products of few rows are slow
CHUNK_ROWS = 8192  # rows that can be summed in single precision
MANY_COLUMNS = 512
GPU_PART = 32  # of a GPU's memory, the part that one chunk takes: there a chunk costs its start, and no cache helps
COPY_BYTES = 96 * 2**20  # data up to this size are normalised once, into a copy


@dataclass(frozen=True)
class Points:
    """Points for k-means: row i is `data[i]` at unit length; a zero vector stays zero.

    `sharded` points are this process's part of the points of all processes, in rank order.
    """

    data: Shaped[Tensor, "N D"]
    inverse: Float[Tensor, " N"] | None  # 1 / length, 0 for a zero vector; None: the data are unit length already
    weights: Float[Tensor, " N"] | None  # None: each point counts once
    solid: Float[Tensor, " N"] | None  # the weights, but 0 for a zero vector; None: each point counts once
    dtype: torch.dtype
    chunk_size: int | None
    sharded: bool
    first: int  # the place of row 0 among the points of all processes
    total: int  # the number of points of all processes
    mass: float  # the sum of the weights of all processes
    solid_mass: float  # the same without zero vectors
    fixed: Int[Tensor, " N"] | None = None  # the cluster that a point is to stay in, −1: any; None: all are free

    def __len__(self) -> int:
        return len(self.data)

    @property
    def device(self) -> torch.device:
        """The device of the points."""
        return self.data.device

    @property
    def dimension(self) -> int:
        """The length of a row."""
        return int(self.data.shape[1])

    def spans(self, columns: int) -> Iterator[slice]:
        """Yield chunks of the rows that fit the cache, or the GPU, together with `columns` cosines a row."""
        return spans(len(self), self.chunk_size or rows_per_chunk(self.dimension + columns, self.device))

    def product_spans(self, columns: int) -> Iterator[slice]:
        """Yield chunks for one product with `columns` centres: long ones where that measured faster."""
        if self.chunk_size is None and columns >= MANY_COLUMNS and self.device.type != "cuda":
            return spans(len(self), max(1, min(CHUNK_ROWS, PRODUCT_VALUES // columns)))
        return self.spans(2 * columns)

    def rows(self, where: slice | Int[Tensor, " n"]) -> Float[Tensor, "n D"]:
        """Return these rows at unit length."""
        picked = self.data[where] if isinstance(where, slice) else self.data.index_select(0, where)
        rows = picked.to(self.dtype)
        return rows if self.inverse is None else rows * self.inverse[where][:, None]

    def sum_over_processes(self, local: Tensor) -> Tensor:
        """Return the sum of every process's tensor: the tensor itself when the points are not sharded."""
        return sum_over_processes(local) if self.sharded else local

    def all_gather(self, local: Tensor) -> Tensor:
        """Return every process's tensor, stacked in rank order."""
        return all_gather(local) if self.sharded else local[None]

    def apply_fixed(self, labels: Int[Tensor, "n ..."], where: slice | Int[Tensor, " n"]) -> Int[Tensor, "n ..."]:
        """Return the clusters of these rows: the given labels, except for fixed points."""
        if self.fixed is None:
            return labels
        fixed = self.fixed[where].view(-1, *[1] * (labels.ndim - 1))
        return torch.where(fixed >= 0, fixed, labels)

    @property
    def rank(self) -> int:
        """This process's rank; 0 if the points are not sharded."""
        return rank() if self.sharded else 0

    def gathered(self, places: Int[Tensor, " m"]) -> Points:
        """Return the points at these places of all processes' points, on every process."""
        local = places.to(self.device) - self.first
        here = ((local >= 0) & (local < len(self))).nonzero()[:, 0]
        local = local[here]
        rows = torch.zeros((len(places), self.dimension), dtype=self.dtype, device=self.device)
        for span in spans(len(here), CHUNK_ROWS):
            rows.index_copy_(0, here[span], self.rows(local[span]))
        rows = self.sum_over_processes(rows)
        weights, solid = (
            None
            if held is None
            else self.sum_over_processes(rows.new_zeros(len(rows)).index_copy_(0, here, held[local]))
            for held in (self.weights, self.solid)
        )
        masses = _mass(rows, weights), _mass(rows, solid)
        return Points(rows, None, weights, solid, self.dtype, self.chunk_size, False, 0, len(rows), *masses)


def prepare(
    data: Shaped[Tensor, "N D"],
    weights: Float[Tensor, " N"] | None,
    chunk_size: int | None,
    sharded: bool,
    fixed: Int[Tensor, " N"] | None = None,
) -> Points:
    """Check the data and measure every row, reading them once; only small data are copied."""
    if data.ndim != 2 or data.shape[1] == 0:
        raise InputError(f"k-means: the points have the shape {tuple(data.shape)}: give a table of N rows, D columns")
    if chunk_size is not None and chunk_size < 1:
        raise InputError(f"k-means: chunk_size is {chunk_size}: choose 1 or more, or None")
    dtype = data.dtype if data.dtype in (torch.float32, torch.float64) else torch.float32
    lengths = torch.empty(len(data), dtype=dtype, device=data.device)
    for span in spans(len(data), chunk_size or rows_per_chunk(data.shape[1], data.device)):
        lengths[span] = _lengths(data[span].to(dtype), span.start)
    if weights is not None:
        weights = _checked_weights(weights, len(data)).to(data.device, dtype)
    zero = lengths < torch.finfo(dtype).tiny
    some_zero = bool(zero.any())
    unit = data.dtype == dtype and not some_zero and bool(((lengths - 1).abs() < 4 * torch.finfo(dtype).eps).all())
    inverse = None if unit else lengths.reciprocal().where(~zero, 0)
    solid = weights
    if some_zero:
        solid = (~zero).to(dtype) if weights is None else weights.where(~zero, 0)
    if inverse is not None and data.numel() * dtype.itemsize <= COPY_BYTES:
        data, inverse = data.to(dtype) * inverse[:, None], None
    share = [float(len(data)), _mass(data, weights), _mass(data, solid)]
    shares = torch.tensor(share, dtype=torch.float64, device=data.device)
    shares = (all_gather(shares) if sharded else shares[None]).cpu()
    first = int(shares[: rank() if sharded else 0, 0].sum())
    total, mass, solid_mass = shares.sum(dim=0).tolist()
    return Points(data, inverse, weights, solid, dtype, chunk_size, sharded, first, int(total), mass, solid_mass, fixed)


def spans(rows: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` rows that cover `rows`."""
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def rows_per_chunk(values_a_row: int, device: torch.device) -> int:
    """Return the number of rows of a chunk, given the number of values of a row."""
    rows = max(64, values_at_a_time(CHUNK_VALUES, device) // values_a_row)
    return rows if device.type == "cuda" else min(rows, CHUNK_ROWS)


def values_at_a_time(cached: int, device: torch.device) -> int:
    """Return the number of values to compute at a time: those that stay in a CPU's cache, or a part of a GPU's memory.

    It depends on the memory of the card, not on what is free, so that a run repeats.
    """
    if device.type != "cuda":
        return cached
    return torch.cuda.get_device_properties(device).total_memory // (GPU_PART * torch.float32.itemsize)


def _mass(rows: Tensor, weights: Tensor | None) -> float:
    return float(len(rows) if weights is None else weights.sum(dtype=torch.float64))


def _lengths(rows: Float[Tensor, "n D"], start: int) -> Float[Tensor, " n"]:
    """Return the rows' lengths, also where the squares would overflow or vanish."""
    lengths: Tensor = torch.linalg.vector_norm(rows, dim=1)
    limits = torch.finfo(rows.dtype)
    odd = ~((lengths > 1e4 * limits.tiny**0.5) & (lengths < 1e-4 * limits.max**0.5))
    if bool(odd.any()):
        odd_rows = rows[odd]
        bad = ~torch.isfinite(odd_rows).all(dim=1)
        if bool(bad.any()):
            row = start + int(odd.nonzero()[bad][0])
            raise InputError(f"k-means: row {row} holds NaN or infinity: remove the row or repair its values")
        largest = odd_rows.abs().amax(dim=1).clamp(min=limits.tiny)
        lengths[odd] = largest * torch.linalg.vector_norm(odd_rows / largest[:, None], dim=1)
        if bool(torch.isinf(lengths).any()):
            row = start + int(torch.isinf(lengths).nonzero()[0])
            raise InputError(f"k-means: row {row} is too long for {rows.dtype}: divide the data by a constant")
    return lengths


def _checked_weights(weights: Tensor, rows: int) -> Tensor:
    if weights.shape != (rows,):
        raise InputError(f"k-means: weights of shape {tuple(weights.shape)} for {rows} points: give one per point")
    if not bool(torch.isfinite(weights).all()) or bool((weights < 0).any()):
        raise InputError("k-means: a weight is negative or not finite: give weights of 0 or more")
    return weights

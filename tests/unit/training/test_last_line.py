"""The results of a run are computed in blocks of rows: images × clusters are never in memory at once."""

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F

from helpers.allocations import Allocations, peak_growth
from helpers.staged import opened
from propos.evaluation import uniformity_std
from propos.runs import CONFIDENCE_TEMPERATURE, ImageTable, write_table
from propos.training.corrections import EXCLUDED, FREE, Corrections
from propos.training.e_step import e_step
from propos.training.embedding import collect, method_output_batches
from propos.training.model import COSINES, predict_from_embeddings

MB = 2**20


def unit_vectors(count, dimension, seed=0):
    return F.normalize(torch.randn(count, dimension, generator=torch.Generator().manual_seed(seed)), dim=1)


def test_blocks_give_what_all_rows_at_once_give():
    images, clusters = 3000, COSINES // 1000  # three blocks
    points, prototypes = unit_vectors(images, 4), unit_vectors(clusters, 4, seed=1)
    labels = torch.arange(images) % clusters
    labels[7::100] = -1
    found = predict_from_embeddings(points, prototypes, labels)
    cosines = points.double() @ prototypes.double().T
    own = torch.where(labels >= 0, labels, cosines.argmax(dim=1))
    assert np.array_equal(found.cluster, own.numpy())
    distance = 1 - cosines[torch.arange(images), own]
    np.testing.assert_allclose(found.distance, distance.numpy(), atol=1e-6)
    shares = torch.softmax(cosines / CONFIDENCE_TEMPERATURE, dim=1)[torch.arange(images), own]
    np.testing.assert_allclose(found.confidence, shares.numpy(), rtol=1e-4)


def test_the_peak_of_memory_does_not_grow_with_images_times_clusters():
    images, clusters = 60_000, 600  # 137 MB a matrix, of which there were three
    points, prototypes = unit_vectors(images, 4), unit_vectors(clusters, 4, seed=1)
    labels = torch.zeros(images, dtype=torch.int64)
    predict_from_embeddings(points[:9], prototypes, labels[:9])  # what torch allocates once
    grown, _ = peak_growth(lambda: predict_from_embeddings(points, prototypes, labels))
    assert grown < 100 * MB


def test_a_head_s_assignments_are_never_whole():
    learner, source, _ = opened("scan", clusters=100, network__dimension=8)
    with Allocations() as made:
        e_step(learner, _Often(source, 30), 0, None)
    assert max(made.values) < 6000 * 100  # a map of the network, of 256 images, has 524,288


class _Often:
    """The same images several times."""

    def __init__(self, source, times):
        self._source, self._times = source, times

    def __getattr__(self, name):
        return getattr(self._source, name)

    def __len__(self):
        return len(self._source) * self._times

    def batch(self, positions):
        return self._source.batch(positions % len(self._source))


def test_a_head_s_prototypes_are_the_means_of_its_clusters_and_those_of_empty_ones_weighted_by_probability():
    learner, source, _ = opened("scan", clusters=40)
    fixed = torch.full((len(source),), FREE)
    fixed[:5], fixed[5:9] = 3, EXCLUDED
    found = e_step(learner, source, 0, None, corrections=Corrections(fixed, {}, {}))
    outputs = list(method_output_batches(learner.method, source, learner.config))
    points, shares = (torch.cat([batch[place] for batch in outputs]).double() for place in (0, 2))
    cluster = torch.where(fixed >= 0, fixed, shares.argmax(dim=1))
    kept = fixed != EXCLUDED
    assert torch.equal(found.labels, torch.where(kept, cluster, -1))
    assert len(cluster[kept].unique()) < 40
    for number in range(40):
        members = kept & (cluster == number)
        total = points[members].sum(dim=0) if members.any() else (shares[:, number : number + 1] * points).sum(dim=0)
        torch.testing.assert_close(found.prototypes[number].double(), F.normalize(total, dim=0), atol=1e-5, rtol=0)
    torch.testing.assert_close(found.confidence.double(), shares[torch.arange(len(shares)), cluster])


def test_batches_are_collected_into_tables_of_their_rows():
    batches = [(torch.arange(start, start + 3)[:, None], torch.arange(start, start + 3)) for start in (0, 3)]
    first, second = collect(iter(batches), 6)
    assert first.shape == (6, 1)
    assert first[:, 0].tolist() == second.tolist() == [0, 1, 2, 3, 4, 5]


def test_spread_is_measured_in_blocks():
    points = unit_vectors(400_000, 8)
    grown, found = peak_growth(lambda: uniformity_std(points.numpy()))
    assert found == pytest.approx(float(points.double().std(dim=0, correction=0).mean()), rel=1e-6)
    assert grown < 30 * MB  # half of all rows in double precision, of which there were three copies


def test_a_table_is_written_in_parts(tmp_path):
    count = 70_000
    names = [f"folder/{number}.jpg" for number in range(count)]
    column = np.arange(count) % 7
    table = ImageTable(names, column, column / 7, column / 8, column.astype(str))
    write_table(table, tmp_path / "whole.parquet")
    parts = list(table.parts(65_536))
    assert [len(part.images) for part in parts] == [65_536, 4_464]
    read = pq.read_table(tmp_path / "whole.parquet")
    assert read["id"].to_pylist() == list(range(count))
    assert read["image"].to_pylist() == names
    assert read["label"].to_pylist() == table.label.tolist()
    assert pq.read_metadata(tmp_path / "whole.parquet").num_row_groups == 2

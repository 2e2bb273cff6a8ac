"""Learning from a corrected run: who stays, who takes no part, and what holds in the new run."""

import shutil

import numpy as np
import pytest
import torch

from helpers.interruption import results
from helpers.runs import corrected
from helpers.small import CPU, finished_run, quick_config, some_digits
from propos.common.errors import InputError, Interrupted
from propos.runs import Run, RunFolder
from propos.training import Silent, WarmStart, continuation_config, start_from, train
from propos.training.corrections import EXCLUDED, FREE
from propos.training.order import epoch_order
from propos.training.pinned import pin_merged_parts, pin_neighbours
from propos.training.schedule import Schedule

SPLIT, JUNK, MOVED, CONFIRMED = [3, 4, 5, 6], [10, 11, 12], [20, 21], [30, 31]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished run on the first 150 digits."""
    return finished_run(tmp_path_factory.mktemp("runs") / "earlier", some_digits(np.arange(150)))


@pytest.fixture(scope="module")
def earlier(made, tmp_path_factory):
    """The same, corrected: clusters 0 and 1 are one, four images a new one, three are junk, four were looked at."""
    folder = shutil.copytree(made, tmp_path_factory.mktemp("corrected") / "run")
    names = {"images": lambda rows: [str(row) for row in rows]}["images"]
    return corrected(
        folder,
        {"op": "merge", "clusters": [1], "into": 0},
        {"op": "split", "images": names(SPLIT), "into": 12},
        {"op": "junk", "images": names(JUNK)},
        {"op": "move", "images": names(MOVED), "into": 5},
        {"op": "confirm", "images": names(CONFIRMED)},
        {"op": "rename", "cluster": 12, "name": "new ones"},
        {"op": "describe", "cluster": 2, "text": "what they are"},
    )


@pytest.fixture(scope="module")
def order():
    return np.random.default_rng(1).permutation(200)


@pytest.fixture(scope="module")
def taught(earlier, order):
    """What was learnt from it, with other images added and every one renamed: its number is another."""
    source = some_digits(order)
    config = continuation_config(earlier).with_epochs(2)
    return train(config, source, CPU, Silent(), start=start_from(earlier, source, CPU))


def test_clusters_keep_their_ids_where_possible_and_corrections_are_fixed(earlier, order):
    start = start_from(earlier, some_digits(order), CPU)
    corrections = start.corrections
    # Ten clusters, one merged, one new: 1 is free, and 12 becomes it.
    was = earlier.corrected.table.cluster
    row = {int(position): place for place, position in enumerate(order)}
    assert [int(corrections.fixed[row[position]]) for position in SPLIT] == [1] * 4
    assert [int(corrections.fixed[row[position]]) for position in MOVED] == [5, 5]
    assert [int(corrections.fixed[row[position]]) for position in CONFIRMED] == [int(was[each]) for each in CONFIRMED]
    assert [int(corrections.fixed[row[position]]) for position in JUNK] == [EXCLUDED] * 3
    assert [int(start.labels[row[position]]) for position in JUNK] == [-1] * 3
    assert corrections.left_out == 3
    assert (corrections.names, corrections.descriptions) == ({1: "new ones"}, {2: "what they are"})
    assert int((corrections.fixed == FREE).sum()) >= 200 - 11 - 5  # the digits hold a few all but identical images
    np.testing.assert_array_equal(start.prototypes[1], earlier.corrected.prototypes.vectors[-1])
    assert continuation_config(earlier).clusters == 10


def test_corrections_hold_in_the_run_that_learnt_from_them(taught, order):
    now = taught.corrected()
    row = {int(position): place for place, position in enumerate(order)}
    for positions, cluster in ((SPLIT, 1), (MOVED, 5), (JUNK, -1)):
        assert now.table.cluster[[row[position] for position in positions]].tolist() == [cluster] * len(positions)
    for position in (*SPLIT, *MOVED, *CONFIRMED):
        assert now.confirmed[row[position]]
    assert not now.confirmed[[row[position] for position in JUNK]].any()
    assert now.names()[1] == "new ones"
    assert next(each.description for each in now.clusters if each.id == 2) == "what they are"
    assert len(taught.model.prototypes) == 10
    assert (taught.table.cluster >= 0).all()  # what training wrote has a cluster for everyone


def test_prototypes_are_the_means_of_included_images(taught):
    now = taught.corrected()
    for number in range(10):
        mean = taught.embeddings[now.table.cluster == number].mean(axis=0)
        np.testing.assert_allclose(
            taught.model.prototypes[number].numpy(), mean / np.linalg.norm(mean), atol=1e-4, err_msg=str(number)
        )


def test_junk_is_never_drawn_and_leaves_the_embeddings_of_others_as_they_are(earlier):
    """A junk image may show anything: what is learnt is the same to the bit."""
    plain, painted = some_digits(np.arange(150)), some_digits(np.arange(150))
    start = start_from(earlier, plain, CPU)
    painted.images = painted.images.copy()
    painted.images[JUNK] = 16 - painted.images[JUNK]
    config = continuation_config(earlier).with_epochs(2)
    first, second = (train(config, source, CPU, Silent(), start=start) for source in (plain, painted))
    others = np.delete(np.arange(150), JUNK)
    np.testing.assert_array_equal(first.embeddings[others], second.embeddings[others])
    assert not np.array_equal(first.embeddings[JUNK], second.embeddings[JUNK])
    np.testing.assert_array_equal(first.model.prototypes, second.model.prototypes)


@pytest.mark.parametrize("balance", [None, torch.arange(10) % 2])
def test_an_epoch_consists_of_included_images(balance):
    config = quick_config()
    schedule = Schedule(config.train, config.network, 10, left_out=4)
    drawn = torch.tensor([0, 2, 3, 5, 7, 9])
    order = epoch_order(0, 0, schedule, balance, drawn)
    assert order.shape == (1, 6)
    assert set(order.flatten().tolist()) <= set(drawn.tolist())
    assert balance is not None or sorted(order.flatten().tolist()) == drawn.tolist()


def test_a_stopped_run_ends_with_the_same_bits(earlier, tmp_path):
    source = some_digits(np.arange(200))
    config = continuation_config(earlier).with_epochs(2)
    info = {"status": "running", "from": str(earlier.path)}
    whole, cut = (RunFolder.create(tmp_path / name, info, config) for name in ("whole", "cut"))
    start = start_from(earlier, source, CPU)
    for run in (whole, cut):
        start.write(run)
    train(config, source, CPU, Silent(), whole, start=start).write(whole)
    asked = iter([False] * 4 + [True])
    with pytest.raises(Interrupted):
        train(config, source, CPU, Silent(), cut, lambda: next(asked), start)
    again = WarmStart.read(Run.open(cut.path))
    train(config, source, CPU, Silent(), cut, start=again).write(cut)
    assert results(cut.path) == results(whole.path)
    assert (cut.path / "edits.jsonl").read_bytes() == (whole.path / "edits.jsonl").read_bytes()


def test_another_number_of_clusters_is_refused(earlier):
    from propos.training.continuation import _refuse_other_networks

    config = continuation_config(earlier)
    with pytest.raises(InputError, match="was corrected and now has 10 clusters: leave out -k"):
        _refuse_other_networks(earlier, earlier.config, config.with_settings({"clusters": 7}))


@pytest.mark.parametrize("method", ["cc-psl", "kmeans-pixels"])
def test_heads_and_what_learns_nothing_keep_images_where_they_were_put(method, tmp_path):
    source = some_digits(np.arange(120))
    config = quick_config(source, method=method)
    run = RunFolder.create(tmp_path / "run", {"status": "finished"}, config)
    train(config, source, CPU, Silent()).write(run)
    moves = {"op": "move", "images": ["7", "8"], "into": 4}, {"op": "junk", "images": ["9"]}
    earlier = corrected(run.path, *moves)
    if set(earlier.corrected.prototypes.ids) != set(range(10)):
        pytest.fail("an image more or less emptied a cluster: choose others")
    now = train(continuation_config(earlier), source, CPU, Silent(), start=start_from(earlier, source, CPU)).corrected()
    assert now.table.cluster[[7, 8, 9]].tolist() == [4, 4, -1]
    assert now.confirmed.sum() == 2


def test_an_image_put_somewhere_speaks_for_those_nearer_to_it_than_to_any_prototype():
    angles = torch.deg2rad(torch.tensor([0.0, 40.0, 43.0, 52.0, 90.0, 20.0]))
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    prototypes = points[[0, 4]]
    # 40° was put into the cluster at 90°, 52° is junk: 43° follows the first, 19° is nearer to 0°.
    fixed = torch.tensor([FREE, 1, FREE, EXCLUDED, FREE, FREE])
    assert pin_neighbours(points, fixed, prototypes).tolist() == [FREE, 1, 1, EXCLUDED, FREE, FREE]
    nothing = torch.full((6,), FREE)
    assert torch.equal(pin_neighbours(points, nothing, prototypes), nothing)


def test_clusters_that_were_made_one_stay_one_though_their_mean_is_nowhere_near_them():
    """Two at 0° and 120°, made one whose mean is at 60°, and another cluster at 50°."""
    angles = torch.deg2rad(torch.tensor([0.0, 10.0, 30.0, 110.0, 120.0, 52.0, 20.0]))
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    middle, other = (torch.deg2rad(torch.tensor(each)) for each in (60.0, 50.0))
    prototypes = torch.stack([torch.stack([each.cos(), each.sin()]) for each in (middle, other)])
    part, whole = torch.tensor([0, 0, -1, 1, 1, -1, -1]), torch.tensor([0, 0])
    held = torch.tensor([FREE, FREE, FREE, FREE, FREE, FREE, 1])
    # The parts are at 5° and 115°: 30° is nearer to the other cluster, 20° was put into it.
    assert pin_merged_parts(points, held, part, whole, prototypes).tolist() == [0, 0, FREE, 0, 0, FREE, 1]


def test_images_of_merged_clusters_stay_together_in_the_run_that_learns_from_it(made, tmp_path):
    """The two that have least in common are one: of their images none that is nearest to where they were leaves."""
    run = Run.open(made)
    alike = run.prototypes.vectors @ run.prototypes.vectors.T
    one, two = np.unravel_index(alike.argmin(), alike.shape)
    merge = {"op": "merge", "clusters": [int(two)], "into": int(one)}
    earlier = corrected(shutil.copytree(made, tmp_path / "run"), merge)
    source = some_digits(np.arange(150))
    start = start_from(earlier, source, CPU)
    told = train(
        continuation_config(earlier).with_settings({"train.lr": 1e-9, "train.epochs": 1}),
        source,
        CPU,
        Silent(),
        start=start,
    )
    together = np.isin(run.table.cluster, [one, two])
    number = int(start.corrections.whole[0])
    assert (told.table.cluster[together] == number).mean() > 0.9
    assert start.corrections.part.unique().tolist() == [-1, 0, 1]
    assert not told.corrected().confirmed.any()  # nobody said so of each image

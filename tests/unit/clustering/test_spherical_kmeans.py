import subprocess
import sys
import textwrap

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

import propos
from propos import SphericalKMeans
from propos.common.errors import InputError

# scikit-learn exempts its own KMeans from the same check, for the same reason.
EXPECTED_FAILURES = {"check_sample_weight_equivalence_on_dense_data": "seeding draws differently from repeated points"}


def checks():
    estimator = SphericalKMeans(n_clusters=2, n_init=2, max_iter=5)
    return [
        pytest.param(tested, check, id=getattr(check, "func", check).__name__ + f"-{place}")
        for place, (tested, check) in enumerate(
            estimator_checks_generator(estimator, expected_failed_checks=EXPECTED_FAILURES, mark=None)
        )
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("tested", "check"), checks())
def test_scikit_learns_checks_pass(tested, check):
    name = getattr(check, "func", check).__name__
    if name in EXPECTED_FAILURES:
        with pytest.raises(AssertionError, match="sample_weight"):
            check(tested)
    else:
        check(tested)


@pytest.fixture(scope="module")
def digits() -> np.ndarray:
    return load_digits().data.astype(np.float32)


def mean_cosine(rows: np.ndarray, centres: np.ndarray) -> float:
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)
    return float((rows @ centres.T).max(axis=1).mean())


def test_the_public_name_is_the_estimator():
    assert "SphericalKMeans" in dir(propos)
    assert propos.SphericalKMeans is SphericalKMeans


def test_digits_are_served_as_well_as_by_scikit_learn(digits):
    ours = SphericalKMeans(10, random_state=0).fit(digits)
    unit = digits / np.linalg.norm(digits, axis=1, keepdims=True)
    theirs = KMeans(10, n_init=10, random_state=0).fit(unit)
    assert mean_cosine(digits, ours.cluster_centers_) >= mean_cosine(unit, theirs.cluster_centers_) - 1e-4


def test_what_is_learned_agrees_with_itself(digits):
    fitted = SphericalKMeans(10, n_init=3, random_state=0, tol=0).fit(digits)
    distances = fitted.transform(digits)
    np.testing.assert_array_equal(fitted.predict(digits), fitted.labels_)
    np.testing.assert_array_equal(distances.argmin(axis=1), fitted.labels_)
    np.testing.assert_allclose(np.linalg.norm(fitted.cluster_centers_, axis=1), 1, atol=1e-6)
    assert fitted.inertia_ == pytest.approx(distances.min(axis=1).sum(), rel=1e-5)
    assert fitted.score(digits) == pytest.approx(-fitted.inertia_, rel=1e-5)
    assert fitted.score(digits, sample_weight=np.full(len(digits), 2.0)) == pytest.approx(
        -2 * fitted.inertia_, rel=1e-5
    )
    assert list(fitted.get_feature_names_out()) == [f"sphericalkmeans{number}" for number in range(10)]


def test_a_seed_repeats_the_result(digits):
    first, second = (SphericalKMeans(10, n_init=2, random_state=4).fit(digits) for _ in range(2))
    np.testing.assert_array_equal(first.cluster_centers_, second.cluster_centers_)
    np.testing.assert_array_equal(first.labels_, second.labels_)


def test_an_array_of_first_centres_is_where_it_starts(digits):
    fitted = SphericalKMeans(3, init=digits[:3], max_iter=1).fit(digits)
    unit = digits / np.linalg.norm(digits, axis=1, keepdims=True)
    np.testing.assert_array_equal(fitted.labels_, (unit @ unit[:3].T).argmax(axis=1))
    assert fitted.n_iter_ == 1


def test_random_first_centres_lead_to_a_fixed_point_too(digits):
    fitted = SphericalKMeans(10, init="random", n_init=2, random_state=0, tol=0).fit(digits)
    np.testing.assert_array_equal(fitted.predict(digits), fitted.labels_)


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "uint8", ">f4", "reversed", "columns"])
def test_any_array_of_numbers_is_read(digits, kind):
    table = {
        "reversed": lambda: digits[::-1][:, ::-1],
        "columns": lambda: np.asfortranarray(digits),
    }.get(kind, lambda: digits.astype(kind))()
    fitted = SphericalKMeans(5, n_init=2, random_state=0).fit(table)
    reference = SphericalKMeans(5, n_init=2, random_state=0).fit(np.ascontiguousarray(table, dtype=np.float64))
    assert fitted.inertia_ == pytest.approx(reference.inertia_, rel=1e-3)


def test_fewer_distinct_points_than_clusters_are_warned_of():
    points = np.repeat(np.eye(3), 4, axis=0)
    with pytest.warns(ConvergenceWarning, match=r"only 3 of 5 clusters .* lower n_clusters to 3"):
        fitted = SphericalKMeans(5, random_state=0).fit(points)
    assert set(fitted.labels_) == set(range(5))


def test_an_unknown_init_is_refused(digits):
    with pytest.raises(InputError, match="init is 'kmeans'"):
        SphericalKMeans(init="kmeans").fit(digits)


def test_settings_survive_cloning():
    estimator = SphericalKMeans(4, n_init=2, scout_size=None, chunk_size=100, tol=0.5)
    assert clone(estimator).get_params() == estimator.get_params()


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="limits its memory the way Linux can")
def test_a_memory_mapped_array_is_never_copied_whole(tmp_path):
    # 230 MB on disk; the process may allocate 200 MB more than it holds before the fit.
    script = f"""
        import resource
        import numpy as np, torch
        from propos import SphericalKMeans
        torch.set_num_threads(1)
        data = np.memmap({str(tmp_path / "points")!r}, dtype=np.float32, mode="w+", shape=(225_000, 256))
        data[::100] = np.random.default_rng(0).standard_normal((2250, 256))
        data.flush()
        data = np.memmap({str(tmp_path / "points")!r}, dtype=np.float32, mode="r", shape=(225_000, 256))
        SphericalKMeans(2, n_init=1).fit(np.ones((10, 256)) + np.eye(10, 256))
        held = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmData")) * 1024
        resource.setrlimit(resource.RLIMIT_DATA, (held + 200 * 2**20, held + 200 * 2**20))
        fitted = SphericalKMeans(4, n_init=1, tol=0.05, random_state=0).fit(data)
        assert len(fitted.labels_) == 225_000
        assert set(fitted.predict(data[::100])) == set(range(4))
        try:
            data * 2
        except MemoryError:
            print("limited")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "limited"

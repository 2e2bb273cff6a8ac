"""What bad input gets: exit code 2, one line that says what, where and what to do, and nothing written."""

import numpy as np
import pytest

from helpers.command import command
from helpers.small import QUICK, as_flags, save_digits

SETTINGS = [*as_flags(QUICK), "--no-report"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("images")
    save_digits(path / "ok.npz", 40)
    np.save(path / "plain.npy", np.random.default_rng(0).integers(256, size=(40, 8, 8), dtype=np.uint8))
    np.save(path / "one.npy", np.zeros((1, 8, 8), np.uint8))
    np.save(path / "same.npy", np.full((40, 8, 8), 3, np.uint8))
    np.save(path / "few.npy", np.arange(40 * 64, dtype=np.uint8).reshape(40, 8, 8)[np.arange(40) % 3])
    np.save(path / "flat.npy", np.zeros((40, 64)))
    np.save(path / "tiny.npy", np.zeros((40, 2, 2), np.uint8))
    nan = np.zeros((40, 8, 8))
    nan[7] = np.nan
    np.save(path / "nan.npy", nan)
    np.savez(path / "short.npz", images=np.zeros((40, 8, 8), np.uint8), labels=[1, 2])
    (path / "words.npy").write_text("words")
    (path / "photo.txt").write_text("words")
    (path / "empty").mkdir()
    (path / "bad.yaml").write_text("train: {eopchs: 1}")
    return path


CASES = [
    ("nothing.npy -k 3", "nothing.npy: no such file"),
    ("nowhere -k 3", "nowhere: no such"),
    ("photo.txt -k 3", "no image in it can be read: words (no such file)"),
    ("words.npy -k 3", "words.npy: cannot be read"),
    ("empty -k 3", "there are no images in it"),
    ("flat.npy -k 3", "(40, 64)"),
    ("tiny.npy -k 3", "too small"),
    ("nan.npy -k 3", "image 7 holds NaN"),
    ("short.npz -k 3", "2 labels for 40 images"),
    ("one.npy -k 2", "one image"),
    ("same.npy -k 2", "identical"),
    ("one.npy", "one image"),
    ("same.npy", "identical"),
    ("few.npy", "only 3 images differ, too few to choose among 2 or more clusters"),
    ("few.npy -k 5..40", "only 3 images differ, too few to choose among 5 or more clusters"),
    ("plain.npy --method cc", "cc needs the number of clusters from the start: give it, as in -k 10"),
    ("ok.npz --method byol-cc -k 2..9", "byol-cc needs the number of clusters from the start"),
    ("plain.npy --epochs 1", "clusters are needed from the first epoch on: give their number, as in -k 10"),
    ("plain.npy -k 2..2 --epochs 1", "as in -k 2, or train longer (--epochs)\n"),
    ("plain.npy --set propos.psl_start=0", "as in -k 10, or set propos.psl_start to 1 or more\n"),
    ("plain.npy -k 0", "-k 0: at least 2"),
    ("plain.npy -k 1", "-k 1: at least 2"),
    ("plain.npy -k 41", "only 40 images"),
    ("plain.npy -k many", "-k many: write a number, as in -k 10, or a range to choose from, as in -k 5..40"),
    (f"plain.npy -k {'9' * 5000}", f"-k {'9' * 40}…: write a number"),
    (f"plain.npy -k 2..{'9' * 5000}", "…: write a number"),
    (f"plain.npy -k {'9' * 18}", "only 40 images"),
    (f"ok.npz --time {'9' * 400}h", "write it as 45s, 30m or 2h"),
    (f"ok.npz --epochs {10**400}", "train.epochs = "),
    (f"ok.npz --set train.epochs={10**23}", "--set train.epochs"),
    (f"ok.npz --set train.batch_size={10**20}", "train.batch_size"),
    (f"ok.npz --set estep.restarts={10**20}", "estep.restarts"),
    (f"ok.npz --seed {2**63}", "seed = 9223372036854775808"),
    ("plain.npy -k 5..", "-k 5..: write a number"),
    ("plain.npy -k 40..5", "-k 40..5: write the smaller number first, as in -k 5..40"),
    ("plain.npy -k 1..3", "-k 1..3: at least 2"),
    ("plain.npy --set suggest.range=[9,3]", "suggest.range = (9, 3): write [smallest, largest]"),
    ("ok.npz --method kmeens", 'unknown method "kmeens": choose one of propos'),
    ("ok.npz --recipe digit", "did you mean digits?"),
    ("ok.npz --device tpu", "choose auto"),
    ("ok.npz --set train.eopchs=1", "did you mean train.epochs?"),
    ("ok.npz --set train.lr=lots", "train.lr = 'lots'"),
    ("ok.npz --set propos.psl_wieght=1", "unknown key propos.psl_wieght: did you mean propos.psl_weight?"),
    ("ok.npz --set propos.psl_weight=lots", "propos.psl_weight = 'lots'"),
    ("ok.npz --set byol.predictor_rate=2", "byol.predictor_rate: the method is propos, which does not read it"),
    ("ok.npz --set train.epochs=1.5", "train.epochs = 1.5"),
    ("ok.npz --time soon", "--time soon: write it as 45s, 30m or 2h"),
    ("ok.npz --time 1m --epochs 3", "use one of them"),
    ("ok.npz --time 1m --set train.epochs=3", "--time and --set train.epochs both set the number of epochs"),
    ("ok.npz --from empty", "empty: not a run"),
    ("ok.npz --epochs 0", "train.epochs = 0"),
    ("ok.npz --seed -1", "seed = -1"),
    ("ok.npz --config bad.yaml", "bad.yaml: unknown key train.eopchs: did you mean train.epochs?"),
    ("ok.npz --config none.yaml", "none.yaml: cannot be read"),
    ("ok.npz --config bad.yaml --recipe digits", "use one of them"),
    ("ok.npz --out empty/../photo.txt", "is a file"),
    ("ok.npz --set source=x", "--set source: give the source as SOURCE instead"),
    ("ok.npz --set recipe=digits", "--set recipe: give the recipe as --recipe NAME instead"),
    ("ok.npz --labels folders", "ok.npz is an array"),
    ("ok.npz --recipe digits --set views.size=2", "views.size = 2: too small"),
    ("ok.npz --recipe digits --set keep_epochs=[500]", "keep_epochs names epoch 500"),
    ("ok.npz --resume --seed 0", "--resume: no run of ok in runs"),
    ("ok.npz --wat", "No such option"),
    ("", "no source: name a folder"),
    ("--resume", "name the run's folder"),
    ("--resume --out empty", "not a run"),
]


@pytest.mark.parametrize(("arguments", "sentence"), CASES, ids=[case[0][:60] or "nothing" for case in CASES])
def test_run_refuses_it_in_one_line_and_writes_nothing(folder, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(folder)
    before = sorted(folder.rglob("*"))
    result = command(capsys, "run", *arguments.split())
    assert result.code == 2
    assert sentence in result.err
    assert result.err.startswith("propos: ")
    assert result.err.count("\n") == 1
    assert "Traceback" not in result.err
    assert sorted(folder.rglob("*")) == before


@pytest.fixture(scope="module")
def finished(folder):
    from propos.runner.estimator import ProPos

    model = ProPos(4, recipe="digits", epochs=1, settings={"network.hidden": 16, "network.dimension": 8})
    model.fit(np.load(folder / "ok.npz")["images"]).save(folder / "run")
    return folder


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("predict run nothing.npy -o a.csv", "nothing.npy: no such file"),
        ("predict empty plain.npy -o a.csv", "not a run"),
        ("predict run/run.json plain.npy -o a.csv", "run/run.json: is a file: give the run's folder, run\n"),
        ("evaluate photo.txt", "photo.txt: is a file: give the run's folder\n"),
        ("predict run plain.npy -o a.xlsx", ".csv, .parquet, .json"),
        ("predict run plain.npy -o nowhere/a.csv", "does not exist"),
        ("predict run plain.npy", "-o"),
        ("suggest-k nothing.npy", "nothing.npy: no such file"),
        ("suggest-k run -k 7", "-k 7: give a range to choose from, as in -k 5..40"),
        ("suggest-k run -k abc", "-k abc: write a number"),
        ("suggest-k run --epochs 3", "give only -k, --by and --seed"),
        ("suggest-k run -k 30..40", "30 to 40 clusters of 40 images: choose from 2 to 20"),
        ("evaluate empty", "not a run"),
        ("evaluate run --labels nothing.csv", "nothing.csv: no such file"),
        ("evaluate run --labels photo.txt", "needs image,label"),
        ("recipes show digit", "did you mean digits?"),
        ("fly", "No such command"),
    ],
)
def test_the_other_commands_refuse_it_in_one_line(finished, monkeypatch, capsys, arguments, sentence):
    monkeypatch.chdir(finished)
    before = sorted(finished.rglob("*"))
    result = command(capsys, *arguments.split())
    assert result.code == 2
    assert sentence in result.err
    assert result.err.count("\n") == 1
    assert sorted(finished.rglob("*")) == before


def test_a_run_without_labels_evaluates_without_scores(finished, capsys):
    result = command(capsys, "evaluate", finished / "run")
    assert result.code == 0
    assert "no labels: give --labels FILE" in result.out


def test_a_run_of_a_newer_version_is_refused(finished, tmp_path, capsys):
    newer = tmp_path / "newer"
    newer.mkdir()
    (newer / "run.json").write_text('{"schema": 4}')
    result = command(capsys, "evaluate", newer)
    assert result.code == 2
    assert "upgrade propos" in result.err

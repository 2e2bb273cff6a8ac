"""`propos run` without labels and without -k, and `propos suggest-k`, as a person would use them."""

import json
import signal

import numpy as np
import pytest
import yaml

from helpers.command import command, run, start
from helpers.hold import Hold
from helpers.small import QUICK, as_flags, digits, save_digits, without_times

SETTINGS = as_flags(QUICK)
NO_PAGE = "--no-report"


def results(out):
    """Return all that must be the same to the bit."""
    history = [json.loads(line) for line in (out / "history.jsonl").read_text().splitlines()]
    names = ("model.safetensors", "embeddings.npy", "prototypes.npy", "suggestion.json", "config.yaml")
    return [(out / name).read_bytes() for name in names], without_times(history)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    path = tmp_path_factory.mktemp("images") / "unlabelled.npy"
    np.save(path, digits().images[..., 0])
    return path


@pytest.fixture(scope="module")
def finished(images):
    """A run made by the command in a process of its own."""
    out = images.parent / "run"
    result = run("run", images, *SETTINGS, "--out", out, NO_PAGE)
    assert result.code == 0, result.err
    return out, result


def test_a_run_without_a_number_chooses_one_and_says_why_in_two_lines(finished):
    out, result = finished
    suggestion = json.loads((out / "suggestion.json").read_text())
    chosen = suggestion["chosen"]
    assert suggestion["range"] == list(range(2, 41))
    assert {len(values) for values in suggestion["scores"].values()} == {39}
    assert "Choosing at epoch 1 from 2 to 40 clusters in 200 images" in result.out
    assert suggestion["why"] in result.out
    assert suggestion["why"].count("\n") == 1
    assert f"{chosen} clusters of " in result.out
    assert result.err == ""
    config = yaml.safe_load((out / "config.yaml").read_text())
    assert (config["clusters"], config["suggest"]) == (chosen, {"range": [2, 40], "by": "stability"})
    assert len(np.load(out / "prototypes.npy")) == chosen


@pytest.mark.full
def test_suggest_k_trains_the_same_part_and_writes_nothing(finished, images, tmp_path, monkeypatch, capsys):
    out, _ = finished
    monkeypatch.chdir(tmp_path)
    result = command(capsys, "suggest-k", images, *SETTINGS, "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out) == json.loads((out / "suggestion.json").read_text())
    assert not list(tmp_path.iterdir())


def test_suggest_k_tells_its_choice_once_below_what_was_tried(images, capsys):
    result = command(capsys, "suggest-k", images, *SETTINGS, "-k", "2..3")
    assert result.code == 0, result.err
    told = [place for place, line in enumerate(result.out.splitlines()) if "clusters suggested, of 2 to 3" in line]
    tried = [place for place, line in enumerate(result.out.splitlines()) if line.startswith(("  2 ", "  3 "))]
    assert (len(told), len(tried)) == (1, 2)
    assert told[0] > max(tried)


def test_suggest_k_reads_a_finished_run(finished, capsys):
    out, _ = finished
    before = sorted(out.rglob("*"))
    result = command(capsys, "suggest-k", out, "-k", "3..5")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines[:4]] == ["K", "3", "4", "5"]
    assert sum("←" in line for line in lines) == 1
    assert "clusters suggested, of 3 to 5" in lines[4]
    assert len(lines) == 6
    assert sorted(out.rglob("*")) == before


@pytest.mark.full
def test_an_option_asks_for_the_rule_of_autopropos(finished, capsys):
    out, _ = finished
    result = command(capsys, "suggest-k", out, "-k", "3..5", "--by", "autopropos")
    assert result.code == 0, result.err
    assert result.out.splitlines()[0].split() == ["K", "silhouette", "divergence"]
    assert "of 3 to 5, by AutoProPos's rule" in result.out


@pytest.mark.full
def test_the_written_config_repeats_the_run_and_another_number_forgets_the_range(finished, tmp_path, capsys):
    out, _ = finished
    again, other = tmp_path / "again", tmp_path / "other"
    assert command(capsys, "run", "--config", out / "config.yaml", "--out", again, "--quiet", NO_PAGE).code == 0
    assert (again / "model.safetensors").read_bytes() == (out / "model.safetensors").read_bytes()
    assert (again / "config.yaml").read_bytes() == (out / "config.yaml").read_bytes()
    assert (
        command(capsys, "run", "--config", out / "config.yaml", "-k", "3", "--out", other, "--quiet", NO_PAGE).code == 0
    )
    config = yaml.safe_load((other / "config.yaml").read_text())
    assert (config["clusters"], config["suggest"]) == (3, {"range": None, "by": "stability"})


@pytest.mark.full
def test_labels_give_the_number_of_clusters_unless_a_range_is_given(tmp_path, capsys):
    source = save_digits(tmp_path / "labelled.npz")
    for out, arguments in ((tmp_path / "counted", []), (tmp_path / "chosen", ["-k", "3..5"])):
        assert command(capsys, "run", source, *SETTINGS, *arguments, "--out", out, "--quiet", NO_PAGE).code == 0
    assert yaml.safe_load((tmp_path / "counted" / "config.yaml").read_text())["clusters"] == 10
    assert not (tmp_path / "counted" / "suggestion.json").exists()
    assert yaml.safe_load((tmp_path / "chosen" / "config.yaml").read_text())["clusters"] in (3, 4, 5)
    assert json.loads((tmp_path / "chosen" / "suggestion.json").read_text())["range"] == [3, 4, 5]


@pytest.mark.full
def test_a_run_killed_while_it_chooses_ends_with_the_same_bits(finished, images, tmp_path):
    out = tmp_path / "run"
    # The choice has been made and is about to be written.
    hold = Hold(tmp_path, ".suggestion.json.*")
    process = start("run", images, *SETTINGS, "--out", out, "--quiet", NO_PAGE, hold=hold)
    hold.reached(process)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    result = run("run", images, *SETTINGS, "--resume", "--out", out, NO_PAGE)  # the same words, which agree with it
    assert result.code == 0, result.err
    assert results(out) == results(finished[0])

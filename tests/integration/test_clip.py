"""CLIP reads: clusters are named from a list of words, and images are found by a text."""

import csv
import io
import json
import math
import re

import numpy as np
import pytest
import torch
from PIL import Image

from helpers.command import command
from helpers.hub import hub_folder, own_features, own_texts
from helpers.pretrained import pictures
from helpers.runs import folder_run
from helpers.served import Served
from propos.networks import reader_of
from propos.review.report import write_report
from propos.runs import Run

WORDS = ["dog", "red car", "tree", "house of a cat"]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reading")
    pictures(folder / "photos", each=4)
    hub_folder(folder / "clip", "clip")
    hub_folder(folder / "other", "clip", seed=1)
    (folder / "words.txt").write_text("\n".join([*WORDS, "", WORDS[0]]))
    return folder


@pytest.fixture
def run(here, capsys):
    if not (here / "run").exists():
        made = command(
            capsys, "run", here / "photos", "-k", 3, "--start", f"hub:{here / 'clip'}", "-o", here / "run", "--quiet"
        )
        assert made.code == 0, made.err
        assert "cannot propose names" not in made.err
    return Run.open(here / "run")


def of_images(here, run):
    images = [Image.open(here / "photos" / name).convert("RGB") for name in run.table.images]
    return torch.nn.functional.normalize(own_features(here / "clip", "clip", images), dim=1)


def test_texts_are_read_as_transformers_reads_them(here, run):
    texts = ["a red car", "dog", "a photo of a tree.", "unknown words", "cat house"]
    found = reader_of(run.config.start).embed(texts)
    torch.testing.assert_close(found, own_texts(here / "clip", texts), rtol=0, atol=1e-5)


def test_images_are_found_by_a_text(here, run, capsys):
    result = command(capsys, "find", run.path, "--text", "a red car", "-n", 5)
    assert result.code == 0, result.err
    cosines = (of_images(here, run) @ own_texts(here / "clip", ["a red car"])[0]).numpy()
    order = np.argsort(-cosines, kind="stable")[:5]
    rows = list(csv.DictReader(io.StringIO(result.out)))
    assert [row["image"] for row in rows] == [run.table.images[row] for row in order]
    assert [float(row["cosine"]) for row in rows] == pytest.approx(cosines[order], abs=1e-4)


def test_clusters_are_named_from_a_list_of_words(here, run, capsys):
    result = command(capsys, "name", run.path, "--vocabulary", here / "words.txt", "--quiet")
    assert result.code == 0, result.err
    prompts = own_texts(here / "clip", [f"a photo of a {word}." for word in WORDS])
    scale = math.exp(2.6592)  # as a new network of the class has it
    chances = (scale * of_images(here, run) @ prompts.T).softmax(dim=1).numpy()
    lines = result.out.splitlines()
    assert len(lines) == 3
    for line, cluster in zip(lines, sorted(set(run.table.cluster.tolist())), strict=True):
        share, word = re.search(r"(\d+)% of its images look like ([a-z ]+);", line).groups()
        expected = chances[run.table.cluster == cluster].mean(axis=0)[WORDS.index(word)]
        assert int(share) == pytest.approx(100 * expected, abs=0.51)


def test_the_served_page_searches_by_a_text(here, run):
    served = Served(run.path)
    try:
        assert b" data-reads" in served.ask("")[1]
        query = json.dumps({"text": "a tree", "count": 4}).encode()
        status, content = served.ask("api/text", "POST", query)
        assert served.ask("api/text", "POST", b'{"text": "", "count": 4}')[0] == 422
    finally:
        served.end()
    cosines = of_images(here, run) @ own_texts(here / "clip", ["a tree"])[0]
    assert (status, json.loads(content)["rows"]) == (200, np.argsort(-cosines.numpy(), kind="stable")[:4].tolist())


@pytest.mark.full
def test_a_page_of_another_network_has_no_search(tmp_path):
    other = folder_run(tmp_path)
    write_report(other)
    served = Served(other.path)
    try:
        assert b"data-reads" not in served.ask("")[1]
        status, content = served.ask("api/text", "POST", b'{"text": "a tree", "count": 4}')
    finally:
        served.end()
    assert (status, content) == (422, b"text: the run's network cannot read\n")


def refused(capsys, *arguments):
    result = command(capsys, *arguments)
    assert (result.code, result.err.count("\n"), result.out) == (2, 1, "")
    return result.err


def test_what_cannot_be_read_is_refused_in_one_line(here, run, tmp_path, capsys):
    assert "give images, or --text TEXT" in refused(capsys, "find", run.path)
    assert "give images, or --text TEXT" in refused(capsys, "find", run.path, run.table.images[0], "--text", "dog")
    (tmp_path / "one.txt").write_text("dog\n\ndog\n")
    assert "has 1 word:" in refused(capsys, "name", run.path, "--vocabulary", tmp_path / "one.txt")
    (tmp_path / "long.txt").write_text("dog\n" + "cat" * 50)
    assert "is not a word" in refused(capsys, "name", run.path, "--vocabulary", tmp_path / "long.txt")
    tokenizer = here / "clip" / "tokenizer.json"
    good = tokenizer.read_text()
    try:
        tokenizer.write_text(good[:-40])
        assert "tokenizer.json: cannot be read" in refused(capsys, "find", run.path, "--text", "dog")
        tokenizer.unlink()
        assert "tokenizer.json: is missing" in refused(capsys, "find", run.path, "--text", "dog")
    finally:
        tokenizer.write_text(good)
    (here / "clip").rename(here / "away")
    (here / "other").rename(here / "clip")
    try:
        assert "is not the network that the run started with" in refused(capsys, "find", run.path, "--text", "dog")
    finally:
        (here / "clip").rename(here / "other")
        (here / "away").rename(here / "clip")


def test_a_network_that_does_not_read_says_so(here, tmp_path, capsys):
    other = folder_run(tmp_path)
    assert "a search by text needs CLIP" in refused(capsys, "find", other.path, "--text", "dog")
    assert "cannot name clusters" in refused(capsys, "name", other.path, "--vocabulary", here / "words.txt")

"""A network of the hub from the command to predictions, ONNX and the page."""

import csv
import json
import shutil
from contextlib import contextmanager

import numpy as np
import onnxruntime
import pytest

from helpers.command import command
from helpers.hub import KINDS, hub_folder
from helpers.interruption import results
from helpers.pretrained import pictures
from propos import run as propos_run
from propos.common.errors import Interrupted
from propos.runner import Length, Origin, Request, execute_plan, plan
from propos.runs import Run


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    pictures(folder / "photos", each=4)
    return folder


def started(capsys, here, kind="dinov2", *options):
    network, run = here / kind, here / f"run-{kind}"
    if not network.exists():
        hub_folder(network, kind)
    made = command(capsys, "run", here / "photos", "-k", 3, "--start", f"hub:{network}", "-o", run, *options)
    assert made.code == 0, made.err
    return run, made


def test_a_run_predicts_without_the_folder_of_its_network(here, tmp_path, capsys):
    run, made = started(capsys, here)
    assert "k-means on dinov2 features, nothing is trained" in made.out + made.err
    assert "hub:dinov2 (pretrained on imaginary/pictures; licence: apache-2.0)" in made.out + made.err
    start = json.loads((run / "run.json").read_text())["start"]
    assert (start["network"], start["seen"], start["licence"]) == ("hub:dinov2", "imaginary/pictures", "apache-2.0")
    page = (run / "report" / "index.html").read_text() + "".join(
        path.read_text() for path in (run / "report").rglob("*.js")
    )
    assert "imaginary/pictures" in page
    shutil.copytree(run, tmp_path / "moved")
    (here / "dinov2").rename(here / "away")
    try:
        result = command(capsys, "predict", tmp_path / "moved", here / "photos", "-o", tmp_path / "new.csv")
    finally:
        (here / "away").rename(here / "dinov2")
    assert result.code == 0, result.err
    with (tmp_path / "new.csv").open(newline="") as file:
        found = {row["image"]: int(row["cluster"]) for row in csv.DictReader(file)}
    table = Run.open(run).table
    assert found == dict(zip(table.images, table.cluster.tolist(), strict=True))


def test_a_stopped_run_resumes_to_the_same_bits(here, tmp_path):
    network = tmp_path / "tiny"
    hub_folder(network)

    given = Request(
        source=here / "photos",
        clusters=3,
        method="propos",
        origin=Origin(start=f"hub:{network}"),
        length=Length(epochs=2),
        settings={"train.batch_size": 6},
    )

    def run(out, steps):
        left = iter(range(steps))

        @contextmanager
        def stopping():
            yield lambda: next(left, None) is None

        with plan(given) as planned:
            execute_plan(planned, out, stopping=stopping)

    run(tmp_path / "whole", 10**6)
    with pytest.raises(Interrupted):
        run(tmp_path / "stopped", 1)
    assert propos_run(resume=True, out=tmp_path / "stopped", quiet=True, report=False).finished
    assert results(tmp_path / "stopped") == results(tmp_path / "whole")


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_the_onnx_file_agrees_with_the_run(kind, here, capsys):
    run = here / f"run-{kind}"
    if not run.exists():
        started(capsys, here, kind, "--no-report", "--quiet")
    out = here / f"{kind}.onnx"
    result = command(capsys, "export", run, "--to", "onnx", "-o", out)
    assert (result.code, result.err) == (0, "")
    session = onnxruntime.InferenceSession(str(out), providers=["CPUExecutionProvider"])
    side = session.get_inputs()[0].shape[1]
    assert side == (42 if kind.startswith("dinov2") else 28)
    cluster, confidence, embedding = session.run(None, {"images": np.zeros((2, side, side, 3), np.uint8)})
    assert cluster.shape == confidence.shape == (2,)
    assert np.allclose(np.linalg.norm(embedding, axis=1), 1, atol=1e-5)

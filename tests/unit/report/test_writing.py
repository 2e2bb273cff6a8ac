import base64
import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from helpers.page_names import spelt_out
from helpers.runs import EVIL, folder_run, make_run
from propos.data import open_source, open_streamed
from propos.review.report import write_report
from propos.review.report.curves import charts
from propos.review.report.payload import move_out, packed, script
from propos.review.report.pictures import draw_pictures, picture_order
from propos.runs import Run, RunFolder


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        root = tmp_path_factory.mktemp("written")
        patch.setenv("PROPOS_CACHE", str(root / "cache"))
        run = folder_run(root)
        write_report(run)
        yield run


def data_of(run):
    text = (run.path / "report" / "data.js").read_text()
    assert text.startswith("window.PROPOS_REPORT=")
    return json.loads(text.removeprefix("window.PROPOS_REPORT=").rstrip().removesuffix(";"))


def unpacked(entry):
    types = {"u16": np.uint16, "i32": np.int32, "unit": np.uint16}
    values = np.frombuffer(base64.b64decode(entry["base64"]), types[entry["kind"]])
    return values / 65535 if entry["kind"] == "unit" else values


def test_the_page_holds_the_run_s_table(written):
    data, table = data_of(written), written.table
    assert spelt_out(data["images"]["names"]) == table.images
    assert np.array_equal(unpacked(data["images"]["cluster"]), table.cluster)
    assert np.allclose(unpacked(data["images"]["confidence"]), table.confidence, atol=1e-4)
    assert sum(group["size"] for group in data["clusters"]) == len(table.images) == 201
    assert data["warnings"] == [[1, "most images are in one cluster"]]
    assert data["problems"]["unreadable"] == [["notes.txt", "not an image"]]
    assert any(EVIL in name for name in spelt_out(data["images"]["names"]))


def test_the_page_says_how_wide_embeddings_are_whatever_the_settings_say(written):
    width = written.embeddings.shape[1]
    assert width != written.config.network.dimension
    assert dict(data_of(written)["settings"])["Network"].endswith(f", embeddings of dimension {width}")


def test_the_confusion_matrix_counts_every_image(written):
    labels = data_of(written)["labels"]
    assert labels["names"] == [f"digit {number}" for number in range(10)]
    assert np.sum(labels["counts"]) == 201
    place = labels["rows"].index(0)
    expected = np.mean(np.array(written.table.label) == "digit 0") * 201
    assert np.sum(labels["counts"][place]) == round(expected)


def test_the_twice_saved_file_is_an_exact_copy(written):
    data = data_of(written)
    names = spelt_out(data["images"]["names"])
    twins = [sorted(names[image].split("/")[-1] for image in group) for group in data["problems"]["exact"]]
    assert ["0001.png", "copy of 0001.png"] in twins


def test_a_report_replaces_the_old_one(written):
    (written.path / "report" / "left over.txt").write_text("old")
    write_report(written)
    assert not (written.path / "report" / "left over.txt").exists()
    assert [path.name for path in written.path.glob(".report*")] == []


def test_a_source_that_is_gone_is_said_in_one_line(tmp_path):
    digits = load_digits()
    names = [str(number) for number in range(50)]
    run = make_run(tmp_path / "run", tmp_path / "gone", names, digits.images[:50], clusters=3)
    said = []
    write_report(run, warn=said.append)
    data = data_of(run)
    assert data["pictures"]["sheets"] is None
    assert said == [data["pictures"]["note"]]
    assert said == [f"There are no pictures, because {tmp_path / 'gone'} no longer exists."]


def test_tiles_are_the_images(tmp_path):
    source = open_source("digits")
    order = picture_order([5, 3, 5], np.zeros(len(source), int), np.linspace(0, 1, len(source)))
    assert order[:4].tolist() == [5, 3, 0, 1]
    pictures = draw_pictures(source, order[:600], tmp_path, lambda done, total: None)
    assert pictures.files == ["sheet-0000.png", "sheet-0001.png"]
    sheet = np.asarray(Image.open(tmp_path / "sheet-0000.png"))
    for image in (5, 3, 100):
        row, column = divmod(int(pictures.slot[image]), 32)
        tile = sheet[8 * row : 8 * row + 8, 8 * column : 8 * column + 8]
        assert np.array_equal(tile, source.batch(np.array([image]))[0, 0])
    assert pictures.slot[1_796] == -1


def test_four_of_the_moments_kept_are_shown(tmp_path):
    digits = load_digits()
    names = [str(number) for number in range(50)]
    run = make_run(tmp_path / "run", tmp_path / "gone", names, digits.images[:50], clusters=3)
    (run.path / "snapshots").mkdir()
    for epoch in (1, 2, 3, 5, 8, 13, 21):
        RunFolder(run.path).write_array(f"snapshots/epoch-{epoch:04d}.npy", run.embeddings)
    write_report(Run.open(run.path))
    shown = data_of(run)["moments"]
    assert [moment["epoch"] for moment in shown] == [1, 3, 8, 21]
    assert all(len(unpacked(moment["x"])) == 50 for moment in shown)


def test_damaged_images_of_a_stream_have_no_picture_and_are_no_copies_of_each_other(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    for number, image in enumerate(load_digits().images[:6]):
        Image.fromarray(np.kron(image * 15, np.ones((9, 9))).astype(np.uint8)).save(folder / f"{number}.png")
    for number in (1, 4):  # the header can be read, the rest is cut off
        path = folder / f"{number}.png"
        path.write_bytes(path.read_bytes()[:80])
    with open_streamed(folder, 72, workers=1) as source:
        drawn = draw_pictures(source, np.arange(6), tmp_path, lambda done, total: None)
    assert (drawn.slot == [0, -1, 2, 3, -1, 5]).all()
    assert [digest is None for digest in drawn.digests] == [False, True, False, False, True, False]


def test_names_that_are_no_text_can_be_handed_over():
    assert script({"command": "propos run caf\udce9"}) == b'window.PROPOS_REPORT={"command":"propos run caf\\udce9"};\n'


def test_numbers_travel_as_little_endian_text():
    assert base64.b64decode(packed(np.array([1, 258]), "u16")["base64"]) == b"\x01\x00\x02\x01"
    assert base64.b64decode(packed(np.array([0.0, 2.0]), "unit")["base64"]) == b"\x00\x00\xff\xff"


def test_a_value_that_is_no_number_is_left_out():
    def line(epoch, **losses):
        return {"epoch": epoch, "losses": losses, "measures": {}}

    epochs, drawn = charts([line(0, total=float("nan"), psa=1.0), line(1, total=2.0, psa=None)])
    assert epochs == [0, 1]
    assert drawn[0].curves == {"total": [None, 2.0], "psa": [1.0, None]}


def test_a_report_needs_no_torch():
    code = "import sys, propos.review.report, propos.cli.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_large_arrays_move_into_scripts_of_their_own(monkeypatch):
    monkeypatch.setattr("propos.review.report.payload.LARGE", 8)
    short, long = {"kind": "u8", "base64": "AAAA"}, {"kind": "u8", "base64": "AAAAAAAAAAAA"}
    kept, scripts = move_out({"version": 1, "images": {"x": short, "names": long, "slot": None}, "more": [long]})
    moved = {"kind": "u8", "file": "part-images-names.js"}
    assert kept == {"version": 1, "images": {"x": short, "names": moved, "slot": None}, "more": [long]}
    assert scripts == {"part-images-names.js": b'window.PROPOS_PART="AAAAAAAAAAAA";\n'}

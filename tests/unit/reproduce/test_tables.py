"""Tables assembled from cells made by hand, and what is written of them."""

import csv
import io
import subprocess
import sys
from pathlib import Path

import pytest

from propos.runner.batch import TrainingOptions
from propos.runs import RunFolder
from propos.study.reproduce.assembly import assemble
from propos.study.reproduce.budgets import Budget
from propos.study.reproduce.elements import Entry, Ours
from propos.study.reproduce.hours import forward_operations
from propos.study.reproduce.items import ITEMS, find_items
from propos.study.reproduce.output import markdown, to_csv, write_item
from propos.study.reproduce.page import page
from propos.study.reproduce.paper import PaperNumber
from propos.study.reproduce.paths import ReproducePaths
from propos.study.reproduce.reproduction import ReproduceRequest, reproduce
from propos.study.reproduce.results import Results

KEEP = Path(__file__).parents[3] / "docs" / "keep_cells.py"
PIXELS = {"clusters": 10, "pixels.mean": (0.5, 0.5, 0.5), "pixels.std": (0.2, 0.2, 0.2)}


def write_cell(paths, task, **scores):
    """Write a finished run folder for a cell, with these measures at its end."""
    info = {
        "status": "finished",
        "seconds": 1800.0,
        "processor_seconds": 90.0,
        "command": f"propos reproduce --out {paths.out}",
        "source": {"images": 200, "root": str(paths.out)},
    }
    settings = {**PIXELS, "source": str(paths.out / "images.npz"), "data": str(paths.out)}
    run = RunFolder.create(paths.run(task), info, task.config.with_settings(settings))
    measures = {
        "n_clusters": 10,
        "uniformity_std": 0.05,
        "uniformity_reference": 0.1,
        "imbalance_ratio": 0.5,
        "smallest_cluster": 10,
        "largest_cluster": 20,
        "churn": None,
        **scores,
    }
    run.write_history([{"epoch": 4, "losses": {}, "rates": {}, "measures": measures, "seconds": {}}])


@pytest.fixture
def results(tmp_path):
    """Table 6 of which ProPos is finished on CIFAR-10 with three seeds, and CC with one."""
    paths = ReproducePaths(tmp_path)
    found = Results(ITEMS["table-6"], 3, Budget("small"), paths)
    for cell, task in found.tasks.items():
        if cell.setup.data == "cifar-10" and cell.setup.method == "propos":
            write_cell(paths, task, nmi=0.84 + 0.01 * cell.seed, accuracy=0.5, ari=0.4, ami=0.4)
        if cell.setup.data == "cifar-10" and cell.setup.method == "cc" and cell.seed == 0:
            write_cell(
                paths, task, nmi=0.3, accuracy=0.3, ari=0.3, ami=0.3, head_nmi=0.6, head_accuracy=0.7, head_ari=0.5
            )
    return found


def test_our_mean_over_seeds_is_next_to_the_papers(results):
    item = assemble(results)
    (table,) = item.parts
    rows = dict(table.rows)
    nmi, accuracy = rows["ProPos"][:2]
    assert nmi.ours.mean == pytest.approx(85.0)
    assert nmi.ours.sd == pytest.approx(1.0)
    assert nmi.paper == PaperNumber(85.1, 0.5)
    assert (nmi.within, accuracy.within) == (True, False)  # 0.1 off; 50 instead of 91.6
    assert rows["CC"][0].ours.values == (60.0,)  # its cluster head's
    assert rows["CC, by k-means on its instance head"][0].ours.values == (30.0,)
    assert rows["BYOL"][0].ours.why == "data not found"
    assert item.cells == (4, 66)
    assert item.seconds == 4 * 1800


def test_the_study_says_seed_by_seed_how_far_one_method_is_ahead(tmp_path):
    found = Results(ITEMS["study"], 3, Budget("small"), ReproducePaths(tmp_path, tmp_path))
    before = Results(ITEMS["study"], 3, Budget("small"), ReproducePaths(tmp_path / "nothing", tmp_path))
    assert len(assemble(before).parts) == 3 + 6  # curves of both sets
    accuracies = {"propos": (0.50, 0.60, 0.70), "byol": (0.45, 0.61, 0.40)}  # ahead by 5, -1 and 30
    for cell, task in found.tasks.items():
        if cell.setup.data == "fashion-mnist" and cell.setup.method in accuracies:
            write_cell(found.paths, task, accuracy=accuracies[cell.setup.method][cell.seed], nmi=0.5, ari=0.4)
    item = assemble(found)
    scores, health, orders, *curves = item.parts
    assert [column.group for column in scores.columns[::3]] == ["CIFAR-10", "Fashion-MNIST"]
    assert dict(scores.rows)["ProPos"][4].ours.values == pytest.approx((50.0, 60.0, 70.0))
    assert dict(scores.rows)["ProPos"][1].paper == PaperNumber(91.6, 0.4)
    spread, balance, minutes = dict(health.rows)["BYOL"][3:]
    assert spread.ours.mean == pytest.approx(100 * 0.05 * 128**0.5)  # of the small study's 128 dimensions
    assert (balance.ours.mean, minutes.ours.mean) == (50.0, 1.5)
    rows = {row[0]: row[1:] for row in orders.rows}
    assert rows["BYOL"] == ["+3.8, +5.7", "data not found", "data not found", "+11.3, in 2 of 3", "+0.0, in 0 of 3"]
    assert rows["ProPos w/o PSL"][3] == "data not found"
    assert [curve.title.partition(":")[0] for curve in curves] == ["Fashion-MNIST"] * 3  # of CIFAR-10 there is nothing
    text = markdown(item)
    assert "| method | CIFAR-10 NMI | paper | CIFAR-10 ACC | paper |" in text
    assert "| Fashion-MNIST NMI | Fashion-MNIST ACC | Fashion-MNIST ARI |" in text  # the paper has nothing of it


def test_the_tolerance_is_the_papers_spread_else_two_points_whatever_our_seeds_spread():
    def near(*seeds, paper_sd):
        return Entry(Ours(seeds), PaperNumber(80.0, paper_sd)).within

    assert near(80.5, paper_sd=0.5)
    assert not near(80.6, paper_sd=0.5)
    assert not near(70.6, 90.6, paper_sd=0.5)  # seeds that spread far pass no more easily
    assert near(78.0, paper_sd=None)
    assert not near(77.9, paper_sd=None)
    assert near(80.04, paper_sd=0.0)  # the paper prints one decimal
    assert Entry(Ours((80.0,), stand_in=True), PaperNumber(80.0, 0.5)).within is None  # other images


def test_a_table_is_written_as_markdown_and_csv(results):
    item = assemble(results)
    text = markdown(item)
    assert "| ProPos | 85.0 ± 1.0 | 85.1 ± 0.5 ✓ |" in text
    assert "| CC | 60.0 (1 of 3 seeds) | 66.1 ± 0.3 ✗ |" in text
    assert "train.epochs: 1,000 → 20" in text
    assert "4 of 66 cells are finished; total training time 2.0 h" in text
    rows = list(csv.DictReader(io.StringIO(to_csv(item.parts))))
    (row,) = [r for r in rows if (r["row"], r["column"], r["part"][:8]) == ("ProPos", "NMI", "CIFAR-10")]
    assert float(row["ours"]) == pytest.approx(85.0)
    assert (row["seeds"], row["paper"], row["paper_sd"], row["within_tolerance"]) == ("3", "85.1", "0.5", "yes")


def test_a_stand_in_is_named_in_the_head_of_its_columns(tmp_path):
    results = Results(ITEMS["table-9"], 1, Budget("tiny"), ReproducePaths(tmp_path))
    assert "| CIFAR-10-LT (stand-in: digits) NMI | paper |" in markdown(assemble(results))


def test_absent_data_are_called_so_where_nothing_stands_in(tmp_path):
    results = Results(ITEMS["table-3"], 1, Budget("small"), ReproducePaths(tmp_path, tmp_path))
    (table,) = assemble(results).parts
    rows = dict(table.rows)
    assert rows["ProPos"][0].ours.why == "data not found"
    item = assemble(Results(ITEMS["table-5"], 1, Budget("small"), ReproducePaths(tmp_path, tmp_path)))
    row = "CPC, ResNet-101, batch 512, - epochs"
    assert all(entries[0].ours is not None for entries in dict(item.parts[0].rows).values())  # every row can be run
    assert f"| {row} | data not found | 48.7 |" in markdown(item)


def test_the_page_escapes_what_it_shows(results):
    item = assemble(results)
    evil = item.__class__(item.id, "<script>alert(1)</script>", item.parts, ["<b>"], ["<i> → </i>"])
    text = page([evil], "tiny", ["<u>"])
    assert "<script>" not in text
    assert "&lt;script&gt;" in text
    for tag in ("<b>", "<i>", "<u>"):
        assert tag not in text


def test_kept_cells_make_the_same_curves_and_name_no_place(tmp_path):
    paths, kept = ReproducePaths(tmp_path / "out"), ReproducePaths(tmp_path / "study")
    for cell, task in Results(ITEMS["figure-3"], 1, Budget("tiny"), paths).tasks.items():
        write_cell(paths, task, nmi=0.25 if cell.setup.method == "byol" else 0.5)
    subprocess.run([sys.executable, KEEP, paths.out, kept.out], check=True)
    *_, nmi = assemble(Results(ITEMS["figure-3"], 1, Budget("tiny"), kept)).parts
    assert [(series.name, series.x, series.y) for series in nmi.series] == [
        ("BYOL", [4], [0.25]),
        ("ProPos", [4], [0.5]),
    ]
    assert not any(str(tmp_path) in path.read_text() for path in kept.out.rglob("*.*") if path.is_file())


def test_without_training_finished_cells_of_all_requested_items_are_written(tmp_path):
    paths = ReproducePaths(tmp_path)
    for ids, seeds in ((["figure-s1"], 2), (["table-1", "figure-s1"], 1)):
        assert (
            reproduce(ReproduceRequest(find_items(ids), Budget("tiny"), seeds), paths, TrainingOptions(), train=False)
            == []
        )
    assert not (tmp_path / "cells").exists()
    text = (tmp_path / "index.html").read_text()
    assert 'id="table-1"' in text
    assert "0 of 4 cells are finished" in text  # two set-ups with the two seeds that were asked for first


@pytest.mark.parametrize("name", ITEMS)
def test_every_item_is_written_before_anything_is_trained(tmp_path, name):
    item = assemble(Results(ITEMS[name], 1, Budget("tiny"), ReproducePaths(tmp_path)))
    write_item(item, tmp_path)
    assert (tmp_path / f"{name}.md").read_text().startswith(f"# {name}: ")
    assert item.cells == (0, len(ITEMS[name].cells(1)))
    assert "not run yet" in markdown(item) or name.startswith("figure") or name == "table-1"


@pytest.mark.parametrize(("backbone", "stem"), [("resnet18", "small"), ("resnet50", "imagenet")])
def test_operations_are_those_torch_counts(backbone, stem):
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from propos.config import Config, NetworkSettings
    from propos.methods import build_method

    settings = NetworkSettings(backbone=backbone, stem=stem, width=0.25, hidden=64, dimension=16)
    with torch.device("meta"):
        method = build_method(Config(network=settings), channels=3).eval()
        with FlopCounterMode(display=False) as counter:
            method.online(torch.empty(2, 3, 36, 36))
    assert 2 * forward_operations(settings, 36) == counter.get_total_flops()

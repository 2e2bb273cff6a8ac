"""Table 7: seconds per epoch of BYOL and of ProPos, measured alternately in one process."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch

from propos.common.errors import InputError
from propos.data import Source
from propos.distributed import world_size
from propos.runner import Decision
from propos.runs import lock_folder, write_atomically
from propos.study.figures import TextTable
from propos.study.reproduce.budgets import Budget, Task, task
from propos.study.reproduce.cell_plan import planned
from propos.study.reproduce.cells import Cell
from propos.study.reproduce.elements import NOT_FOUND, NOT_YET, Part
from propos.study.reproduce.images import STAND_IN
from propos.study.reproduce.items import NAMES, timed_setups
from propos.study.reproduce.paper import PaperNumber, paper_number
from propos.study.reproduce.paths import ReproducePaths
from propos.study.reproduce.results import Results
from propos.training.e_step import e_step
from propos.training.estimate import late_state
from propos.training.learner import Learner, build_learner
from propos.training.m_step import m_step
from propos.training.numerics import numerics
from propos.training.order import epoch_order
from propos.training.prefetch import reading_ahead

TURNS = 5


def pairs(budget: Budget, root: Path | None) -> dict[str, tuple[Task, Task]]:
    """Return what is timed on each set: BYOL's cell and ProPos's."""
    return {
        data: (task(Cell(byol, 0), budget, root), task(Cell(propos, 0), budget, root))
        for data, (byol, propos) in timed_setups().items()
    }


def time_all(budget: Budget, paths: ReproducePaths, device: str, say: Callable[[str], object]) -> list[str]:
    """Time what was not timed yet, as far as its images are here; return the failures, one sentence each."""
    if world_size() > 1:
        return ["table-7 is timed in one process: run it without torchrun"]
    problems = []
    for data, (byol, propos) in pairs(budget, paths.root).items():
        path = paths.measurement(propos, "seconds")
        if propos.available and not path.is_file():
            say(f"timing {data}")
            try:
                with (
                    lock_folder(path.parent),
                    planned(byol, paths, device) as one,
                    planned(propos, paths, device) as other,
                ):
                    write_atomically(path, json.dumps(_timed(one, other)).encode())
            except InputError as error:  # another process may be timing it
                problems.append(f"{data}: {error}")
    return problems


def _timed(byol: Decision, propos: Decision) -> dict[str, Any]:
    """Take turns: some steps of the one, as many of the other, and an E-step; medians over the turns."""
    steps: dict[str, list[float]] = {"byol": [], "propos": []}
    estep = []
    with numerics(propos.config.train), reading_ahead(propos.source, propos.device) as source:
        learners = {
            "byol": build_learner(byol.config, source, byol.device),
            "propos": build_learner(propos.config, source, propos.device),
        }
        step = {name: _step(learner, source) for name, learner in learners.items()}
        for turn in range(TURNS + 1):  # the first is slower
            for name, work in step.items():
                seconds = _seconds(work, propos.device)
                steps[name] += [seconds] if turn else []
            seconds = _seconds(lambda: e_step(learners["propos"], source, 0, None), propos.device)
            estep += [seconds] if turn else []
    number = learners["propos"].schedule.steps
    return {
        "byol": median(steps["byol"]) * number,
        "propos": median(steps["propos"]) * number + median(estep),
        "estep": median(estep),
        "steps": number,
        "turns": TURNS,
        "device": propos.device.type,
    }


def _step(learner: Learner, source: Source) -> Callable[[], object]:
    """Return what makes a step with every term at work."""
    positions, state = epoch_order(learner.config.seed, 0, learner.schedule)[0], late_state(learner)
    return lambda: m_step(learner, source, positions, state)


def _seconds(work: Callable[[], object], device: torch.device) -> float:
    begin = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter() - begin


def table_7(results: Results) -> list[Part]:
    """Return the seconds per epoch next to the paper's hours of 1,000 epochs."""
    rows = []
    for data, (_, propos) in pairs(results.budget, results.paths.root).items():
        path, name = results.paths.measurement(propos, "seconds"), NAMES[data]
        head = f"{name} (stand-in: {STAND_IN})" if propos.images.stand_in else name
        ours = [NOT_YET if propos.available else NOT_FOUND, "", ""]
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            ours = [f"{found['byol']:.3g}", f"{found['propos']:.3g}", f"{found['propos'] / found['byol']:.2f}"]
        theirs = [paper_number("table-7", method, name, "hours") for method in ("BYOL", "ProPos (r=1)")]
        rows.append([head, *ours, *_paper(*theirs)])
    columns = ("set", "BYOL, s", "ProPos, s", "ratio", "paper: BYOL, h", "paper: ProPos, h", "paper: ratio")
    return [TextTable(columns, rows)]


def _paper(byol: PaperNumber | None, propos: PaperNumber | None) -> list[str]:
    if byol is None or propos is None:
        return ["–", "–", "–"]
    return [f"{byol.value:.1f}", f"{propos.value:.1f}", f"{propos.value / byol.value:.2f}"]

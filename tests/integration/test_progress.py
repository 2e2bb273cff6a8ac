"""Progress in the run folder, for programs that watch a run from outside."""

from helpers.command import run, start
from helpers.hold import Hold
from helpers.small import QUICK, as_flags, save_digits
from propos.runs import Run, read_progress


def test_a_running_command_says_what_it_does_and_a_finished_one_leaves_nothing(tmp_path):
    hold = Hold(tmp_path, ".embeddings.npy.*.part")
    source = save_digits(tmp_path / "digits.npz")
    process = start("run", source, "-k", 3, *as_flags(QUICK), "--out", tmp_path / "run", hold=hold)
    hold.reached(process)
    assert read_progress(tmp_path / "run")["doing"] == "Training"
    process.kill()
    process.communicate()
    assert (tmp_path / "run" / "progress.jsonl").exists()
    assert run("run", "--resume", "--out", tmp_path / "run").code == 0
    assert Run.open(tmp_path / "run").finished
    assert not (tmp_path / "run" / "progress.jsonl").exists()

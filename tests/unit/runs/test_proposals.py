"""Proposals: programs write them, a person accepts or dismisses them, and none replaces a person's name."""

import numpy as np
import pytest

from helpers.runs import corrected, make_run
from propos.common.errors import InputError
from propos.runs import Proposal, Rename, Run, accept, choose, dismiss, read_proposals, write_proposals


@pytest.fixture
def run(tmp_path):
    pixels = np.eye(6, dtype=np.float32)
    return make_run(tmp_path / "run", tmp_path / "none", [f"{n}.png" for n in range(6)], pixels, clusters=3)


def name(cluster, words="dog"):
    edit = Rename(v=1, id=f"name-{cluster}", op="rename", cluster=cluster, name=words)
    return Proposal(id=edit.id, kind="name", source="words", evidence="81% agree", cluster=cluster, edit=edit)


def states(run):
    return {proposal.id: state for proposal, state in Run.open(run.path).proposals()}


def test_accepting_names_a_cluster_and_undo_reopens_the_proposal(run):
    write_proposals(run.path, "name", [name(0), name(1)])
    assert states(run) == {"name-0": "open", "name-1": "open"}
    accept(run.edits, [name(0)])
    assert run.corrected.names() == {0: "dog", 1: None, 2: None}
    assert states(run) == {"name-0": "accepted", "name-1": "open"}
    with (run.path / "edits.jsonl").open("a") as log:
        log.write('{"v": 1, "id": "u", "op": "undo", "edit": "name-0"}\n')
    run = Run.open(run.path)
    assert states(run)["name-0"] == "open"
    accept(run.edits, [name(0)])
    assert Run.open(run.path).corrected.names()[0] == "dog"


def test_a_dismissed_proposal_changes_no_cluster(run):
    write_proposals(run.path, "name", [name(0)])
    dismiss(run.edits, [name(0)])
    assert states(run) == {"name-0": "dismissed"}
    assert Run.open(run.path).corrected.names()[0] is None


def test_a_name_that_a_person_gave_dismisses_the_proposed_one(run):
    corrected(run.path, {"op": "rename", "cluster": 0, "name": "mine"}, {"op": "merge", "clusters": [1], "into": 2})
    write_proposals(run.path, "name", [name(0), name(1), name(2)])
    assert states(run) == {"name-0": "dismissed", "name-1": "dismissed", "name-2": "open"}


def test_new_proposals_replace_those_of_their_kind_only(run):
    other = Proposal(id="other", kind="cut", source="s", evidence="e")
    write_proposals(run.path, "cut", [other])
    write_proposals(run.path, "name", [name(0)])
    write_proposals(run.path, "name", [name(1, "cat")])
    assert read_proposals(run.path) == [other, name(1, "cat")]


def test_what_is_damaged_or_unknown_is_refused_in_one_line(run):
    (run.path / "proposals.jsonl").write_text('{"v": 1, "id": "a b"}\n')
    with pytest.raises(InputError, match=r"proposals\.jsonl: line 1: id: String should match"):
        read_proposals(run.path)
    with pytest.raises(InputError, match=r"--accept: unknown proposal 'x': propos proposals lists them"):
        choose([name(0)], ["x"], "--accept")

"""What the list of runs says of each."""

import pytest

from helpers.runs import folder_run
from propos.review.studio.listing import Listing
from propos.review.studio.queue import Queue
from propos.review.studio.work import Work


@pytest.fixture
def listing(tmp_path):
    run = folder_run(tmp_path)
    return Listing(run.path.parent, Queue(tmp_path / "own", run.path.parent)), run.path.name


def test_a_run_that_has_results_and_still_works_writes_its_page(listing):
    found, name = listing
    assert found.describe(name)["state"] == "finished"
    work = found.queue.add(Work(id="abcdefgh", kind="run", run=name, source="/photos"))
    work.state = "working"
    described = found.describe(name)
    assert (described["state"], described["progress"]) == ("working", {"doing": "Writing the page"})

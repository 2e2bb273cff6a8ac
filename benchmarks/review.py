"""Measure the cost of corrections of 60,000 images: on the page, in the server, and with a log of 100,000 edits.

Seconds on the clock; also those of the processor, which other work on the machine changes little.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from propos.review.report import write_report
from propos.review.server.app import application
from propos.review.server.guard import Guard
from propos.runs import Run, apply_file
from report import make_run, metrics, new_tab

IMAGES, EDITS, TURNS = 60_000, 100_000, 20
DEEDS = (
    ("c", TURNS, None, "confirm one"),
    ("m", TURNS, "5", "move one"),
    ("u", TURNS, None, "undo"),
    ("g", 1, "5", "merge two clusters of 6,000"),
)
SHOWN = """async ([key, turns, open]) => {
  const times = [];
  for (let turn = 0; turn < turns; turn++) {
    document.querySelector('.gallery .thumb').focus();
    const start = performance.now();
    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
    if (open !== null) {
      const field = document.querySelector('dialog input');
      field.value = open;
      field.dispatchEvent(new Event('input'));
      field.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
    }
    document.body.getBoundingClientRect(); // laid out
    times.push(performance.now() - start);
    // A closed dialog is gone only with the next frame.
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  }
  return times;
}"""


def main():
    root = Path(tempfile.mkdtemp(prefix="propos-review-"))
    run = make_run(root / "run", IMAGES)
    page = write_report(run)
    look(page, "60,000 images")
    asyncio.run(save(run))
    log = root / "edits.jsonl"
    rng = np.random.default_rng(0)
    rows, into = rng.integers(IMAGES, size=EDITS), rng.integers(10, size=EDITS)
    with log.open("w") as file:
        for number in range(EDITS):
            edit = {"v": 1, "id": f"e{number}", "op": "move", "images": [str(rows[number])], "into": int(into[number])}
            file.write(json.dumps(edit) + "\n")
    apply_file(run, log)
    clock, processor = time.perf_counter(), time.process_time()
    again = Run.open(run.path)
    count = len(again.edits.edits)
    say(f"a log of {count:,} edits opened by Python", clock, processor)
    page = write_report(Run.open(run.path))
    look(page, f"{count:,} edits")
    asyncio.run(save(Run.open(run.path)))
    shutil.rmtree(root)


def say(what, clock, processor):
    print(f"{what}: {time.perf_counter() - clock:.2f} s on the clock, "
          f"{time.process_time() - processor:.2f} s of processor time", flush=True)  # fmt: skip


async def save(run):
    """Time the server's own work for one edit, from its bytes to the answer."""
    app = Guard(application(run, set()), "token", 1)
    times, used = [], []
    for number in range(TURNS):
        edit = {"v": 1, "id": f"bench-{len(run.edits.edits)}-{number}", "op": "confirm", "images": [str(number)]}
        body = (json.dumps(edit) + "\n").encode()
        known = len(run.edits.edits)
        last = run.edits.edits[-1].id if known else ""
        clock, processor = time.perf_counter(), time.process_time()
        status = await posted(app, body, f"since={known}&last={last}")
        times.append(time.perf_counter() - clock)
        used.append(time.process_time() - processor)
        assert status == 200, status
    clock, processor = (1000 * statistics.median(each) for each in (times, used))
    held = f"{len(run.edits.edits):,} in the log"
    print(
        f"one edit saved, {held}: median {clock:.1f} ms on the clock, {processor:.1f} ms of processor time", flush=True
    )


async def posted(app, body, query):
    headers = [(b"host", b"127.0.0.1:1"), (b"origin", b"http://127.0.0.1:1")]
    scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": "POST",
        "path": "/token/api/edits",
        "raw_path": b"",
        "root_path": "",
        "query_string": query.encode(),
        "headers": headers,
    }
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    return sent[0]["status"]


def look(page, what):
    """Time, in the system's Chromium, from a key to the updated page."""
    with new_tab() as tab:
        tools = tab.context.new_cdp_session(tab)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.goto(page.absolute().as_uri() + "#/cluster/3")
        tab.wait_for_selector(".gallery")
        usable, used = tab.evaluate("performance.now() / 1000"), metrics(tools)["TaskDuration"]
        print(f"{what}: page usable by {usable:.2f} s on the clock, {used:.2f} s of its thread", flush=True)
        for key, turns, open_, words in DEEDS:
            before = metrics(tools)["TaskDuration"]
            times = tab.evaluate(SHOWN, [key, turns, open_])
            used = 1000 * (metrics(tools)["TaskDuration"] - before) / turns
            print(f"{what}: {words} shown in {statistics.median(times):.0f} ms (median of {turns}), "
                  f"{used:.0f} ms of the page's thread", flush=True)  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())

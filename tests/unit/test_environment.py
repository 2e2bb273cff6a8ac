"""Variables that torchrun sets, when somebody else has set them."""

import socket

import pytest

from propos.common.errors import InputError, RunFailed
from propos.data.decoding.pool import own_cores
from propos.distributed import join_process_group, local_rank, restart_count, started_by_torchrun

MEANT = ("WORLD_SIZE", "RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@pytest.fixture(autouse=True)
def _no_torchrun(monkeypatch):
    for name in (*MEANT, "TORCHELASTIC_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("value", ["", "two", "-1", "1.5", "0x2", "٣", "1e3", "9" * 5000])
@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("WORLD_SIZE", started_by_torchrun),
        ("TORCHELASTIC_RESTART_COUNT", restart_count),
        ("LOCAL_WORLD_SIZE", own_cores),
    ],
)
def test_nonsense_is_named_in_one_line(monkeypatch, name, read, value):
    monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"{name}=.*: unset it") as refusal:
        read()
    assert len(str(refusal.value)) < 200


def test_no_process_shares_a_machine_with_none(monkeypatch):
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "0")
    with pytest.raises(InputError, match="LOCAL_WORLD_SIZE=0"):
        own_cores()


def enter():
    with join_process_group():
        raise AssertionError("it joined")


@pytest.mark.parametrize("rank", ["2", "-1", "first", ""])
def test_a_number_beyond_the_processes_is_refused(monkeypatch, rank):
    for name, value in (("WORLD_SIZE", "2"), ("RANK", rank), ("MASTER_ADDR", "localhost"), ("MASTER_PORT", "1")):
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=f"RANK={rank}, .* from 0 to 1"):
        enter()


@pytest.mark.parametrize("missing", ["MASTER_ADDR", "MASTER_PORT"])
def test_processes_that_cannot_connect_say_what_is_missing(monkeypatch, missing):
    told = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": "1"}
    for name in told.keys() - {missing}:
        monkeypatch.setenv(name, told[name])
    with pytest.raises(InputError, match=f"no {missing}"):
        enter()


def test_a_port_that_is_taken_is_said_in_one_line(monkeypatch):
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        told = {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "localhost", "MASTER_PORT": str(port)}
        for name, value in told.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(RunFailed, match="the processes cannot connect") as failure:
            enter()
    assert "\n" not in str(failure.value)


def test_what_torchrun_says_is_read(monkeypatch):
    for name, value in (("WORLD_SIZE", "4"), ("RANK", "3"), ("LOCAL_RANK", "1"), ("TORCHELASTIC_RESTART_COUNT", "2")):
        monkeypatch.setenv(name, value)
    assert (started_by_torchrun(), local_rank(), restart_count()) == (True, 1, 2)

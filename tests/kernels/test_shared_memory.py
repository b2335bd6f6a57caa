"""Processes that share memory are told the same sums, and learn of one that is gone."""

import threading

import pytest
import torch

from edgewise.core.errors import EdgewiseError
from edgewise.core.team import Team, WorkerLost
from edgewise.kernels import shared_memory
from edgewise.kernels.shared_memory import SharedMemory, make_shared_file

WORKERS = 3


@pytest.fixture
def path():
    made = make_shared_file(WORKERS)
    yield made
    made.unlink(missing_ok=True)


def of_each(path, ask):
    """What each of several threads finds, which stand for processes."""
    memories = [SharedMemory(path, rank, WORKERS, patience=30.0) for rank in range(WORKERS)]
    path.unlink()  # it is mapped
    found = [None] * WORKERS

    def run(rank):
        found[rank] = ask(memories[rank], rank)

    threads = [threading.Thread(target=run, args=[rank]) for rank in range(WORKERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
def test_sums_and_stacks_are_those_of_all_also_of_many_messages_and_large_ones(path, dtype):
    large = shared_memory.CAPACITY // 2 + 7  # several pieces

    def ask(memory, rank):
        own = [torch.full((n,), rank + n).to(dtype) for n in (1, 5, 0, large, 2)]
        return [memory.summed(t) for t in own * 3] + [memory.stacked(own[1].view(5, 1))]

    first, *others = of_each(path, ask)
    sums = [torch.full((n,), 3 * n + 3).to(dtype) for n in (1, 5, 0, large, 2)] * 3
    assert all(map(torch.equal, first[:-1], sums))
    assert first[-1].tolist() == [[[5 + rank]] * 5 for rank in range(WORKERS)]
    assert all(all(map(torch.equal, first, other)) for other in others)


def test_what_the_first_process_says_goes_by_shared_memory_too(path):
    """Without torch.distributed, which may wait for a process that is gone."""

    def ask(memory, rank):
        team = Team(rank, WORKERS, exchange=memory)
        tensors = {"a": torch.full((3, 2), float(rank)), "b": torch.tensor([rank])}
        return team.led({"epoch": rank}), team.led_tensors(tensors)

    for said, tensors in of_each(path, ask):
        assert said == {"epoch": 0}
        assert tensors["a"].tolist() == [[0.0, 0.0]] * 3
        assert tensors["b"].tolist() == [0]


def test_a_process_that_is_gone_or_silent_is_told(path, monkeypatch):
    monkeypatch.setattr(shared_memory, "_YIELDS", 1)

    def gone():
        raise WorkerLost("worker 1 was killed")

    with pytest.raises(WorkerLost, match="worker 1 was killed"):
        SharedMemory(path, 0, WORKERS, gone).summed(torch.ones(2))
    with pytest.raises(EdgewiseError, match=r"says nothing for 0 seconds.* --resume"):
        SharedMemory(path, 0, WORKERS, patience=0.1).stacked(torch.ones(2))


def test_without_room_for_the_file_there_is_none(monkeypatch):
    def full(**_):
        raise OSError("No space left on device")

    monkeypatch.setattr(shared_memory.tempfile, "mkstemp", full)
    assert make_shared_file(WORKERS) is None

"""One set on a Ray cluster, whose actors are killed. The cluster is Ray's own, on this machine.

`KOEL_RAY_SECONDS` is for how long actors are killed: a minute by default, and ten with `KOEL_LONG_TESTS=1`. Without Ray,
the tests are skipped; `KOEL_RAY_REQUIRED=yes` makes that an error.
"""

import contextlib
import json
import os
import random
import runpy
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pykoel import Filter

if os.environ.get("KOEL_RAY_REQUIRED"):
    import ray
else:
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'pykoel[ray]'")

from pykoel.ray import InDoubt, SharedFilter

SECONDS = float(os.environ.get("KOEL_RAY_SECONDS") or (600 if os.environ.get("KOEL_LONG_TESTS") else 60))

EXAMPLE = Path(__file__).parent.parent / "examples" / "dedup_ray.py"


@pytest.fixture(scope="module", autouse=True)
def cluster():
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAY_USAGE_STATS_ENABLED", "0")
        environment.setenv("RAY_AUTH_MODE", "disabled")
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=200 << 20)
        yield
        ray.shutdown()


def pids(shared):
    """The processes of the actors. Ray starts an actor again first that has none."""
    ask = lambda actor: actor.__ray_call__.options(max_task_retries=-1).remote(lambda self: os.getpid())
    return ray.get([ask(actor) for actor in shared._actors])


def kill(shared):
    for pid in pids(shared):
        os.kill(pid, signal.SIGKILL)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_it_answers_as_a_set_does(tmp_path):
    dice = random.Random(1)
    with SharedFilter(tmp_path / "seen", 3, rate=1e-8) as shared:
        model = set()
        for _ in range(100):
            items = [str(dice.randrange(20_000)) for _ in range(dice.choice([0, 1, 2, 100, 5_000]))]
            assert shared.contains_many(items) == [item in model for item in items]
            adds = dice.random() < 0.6
            expected = []
            for item in items:
                expected.append((item in model) != adds)
                (model.add if adds else model.discard)(item)
            assert (shared.add_many if adds else shared.discard_many)(iter(items)) == expected
        assert len(shared) == len(model)
        assert shared.add("one") and not shared.add(b"one") and "one" in shared
        assert shared.discard("one") and not shared.discard("one") and "one" not in shared
        shared.save()
    assert files(tmp_path / "seen") == ["0-of-3.koel", "1-of-3.koel", "2-of-3.koel"]


def test_one_task_of_all_gets_an_item(tmp_path):
    @ray.remote(num_cpus=0.5)
    def add(shared, seed):
        items = [str(number) for number in range(20_000)]
        random.Random(seed).shuffle(items)
        return [item for at in range(0, 20_000, 1_000) for item in new(shared, items[at : at + 1_000])]

    def new(shared, items):
        return [item for item, is_new in zip(items, shared.add_many(items), strict=True) if is_new]

    with SharedFilter(tmp_path, 2, rate=1e-8) as shared:
        won = ray.get([add.remote(shared, seed) for seed in range(4)])
        assert sorted(item for items in won for item in items) == sorted(str(number) for number in range(20_000))


def test_actors_of_a_name_are_shared(tmp_path):
    with SharedFilter(tmp_path, 2, name="urls") as one:
        other = SharedFilter(tmp_path, 2, name="urls")
        assert one.add("a") and not other.add("a")
        for options in [{"rate": 0.5}, {"seed": 1}]:
            with pytest.raises(ValueError, match="actors of this name"):
                SharedFilter(tmp_path, 2, name="urls", **options)


def test_what_cannot_be_opened_is_refused(tmp_path):
    with pytest.raises(ValueError, match="number of partitions"):
        SharedFilter(tmp_path, 0)
    with pytest.raises(ValueError, match="rate"):
        SharedFilter(tmp_path, 1, rate=2)
    with pytest.raises(TypeError, match="must be an int, not str"):
        SharedFilter(tmp_path, "2")
    with pytest.raises(ValueError, match="options for 1 actors, and 2 partitions"):
        SharedFilter(tmp_path, 2, options=[{}])
    with pytest.raises(FileNotFoundError):
        SharedFilter(tmp_path / "missing", 2, create=False)
    assert files(tmp_path) == []
    with SharedFilter(tmp_path, 2, seed=5) as shared:
        shared.add_many(["a", "b", "c"])
    for wrong in [1, 3]:
        with pytest.raises(ValueError, match=f"another number of partitions than .-of-{wrong}.koel"):
            SharedFilter(tmp_path, wrong, seed=5)
    with pytest.raises(ValueError, match="another seed"):
        SharedFilter(tmp_path, 2)
    assert files(tmp_path) == ["0-of-2.koel", "1-of-2.koel"]
    with SharedFilter(tmp_path, 2, seed=5, create=False) as shared:
        assert len(shared) == 3
    shared.close()
    for ask in [lambda: shared.add("d"), lambda: "a" in shared, lambda: len(shared), shared.save]:
        with pytest.raises(ValueError, match="this set is closed"):
            ask()
    # Without a part, its items would be new again. The actors that found this out have ended, so the next ones do not wait.
    (tmp_path / "1-of-2.koel").rename(tmp_path / "moved")
    for create in [True, False]:
        with pytest.raises(FileNotFoundError, match="lacks 1-of-2.koel, and has other files"):
            SharedFilter(tmp_path, 2, seed=5, create=create)
    (tmp_path / "1-of-2.koel").write_bytes(b"damaged")
    with pytest.raises(ValueError, match="1-of-2.koel"):
        SharedFilter(tmp_path, 2, seed=5)
    (tmp_path / "moved").rename(tmp_path / "1-of-2.koel")
    begun = time.monotonic()
    with SharedFilter(tmp_path, 2, seed=5) as shared:
        assert len(shared) == 3
    assert time.monotonic() - begun < 30
    # The set stays as it was when its files are united.
    parts = [Filter(tmp_path / f"{number}-of-2.koel", readonly=True).copy() for number in range(2)]
    parts[0] |= parts[1]
    parts[0].save(tmp_path / "whole")
    with Filter(tmp_path / "whole", readonly=True) as whole:
        assert len(whole) == 3 and whole.contains_many(["a", "b", "c", "d"]) == [True, True, True, False]
    with SharedFilter(tmp_path, 2, seed=5) as shared:
        assert len(shared) == 3


def test_a_capacity_is_for_all_partitions_together(tmp_path):
    with SharedFilter(tmp_path, 4, capacity=400_000) as shared:
        shared.add_many(map(str, range(400_000)))
    filters = [Filter(path) for path in tmp_path.glob("*.koel")]
    assert all(filter.stats().growth == 1 for filter in filters)
    assert sum(filter.stats().size_in_bytes for filter in filters) < 1.2 * Filter(capacity=400_000).stats().size_in_bytes


def test_a_lookup_is_tried_again_when_its_actor_dies(tmp_path):
    with SharedFilter(tmp_path, 2) as shared:
        shared.add_many(["a", "b", "c"])
        for _ in range(2):
            kill(shared)
            assert shared.contains_many(["a", "b", "c", "d"]) == [True, True, True, False]
            kill(shared)
            assert len(shared) == 3
            kill(shared)
            shared.save()


def test_an_actor_whose_file_is_gone_does_not_begin_an_empty_one(tmp_path):
    with SharedFilter(tmp_path, 2, name="gone") as shared:
        items = [str(number) for number in range(100)]
        shared.add_many(items)
        kill(shared)
        (moved := tmp_path / "moved").mkdir()
        for path in [path for path in tmp_path.iterdir() if path.name.startswith("1-of-2")]:
            path.rename(moved / path.name)
        until = time.monotonic() + 60
        while True:
            with pytest.raises(InDoubt) as raised:
                shared.add_many(items)
            # Those of the other one were there. At first, both may be about to start.
            if isinstance(raised.value.__cause__, FileNotFoundError):
                break
            assert time.monotonic() < until
        assert set(raised.value.answers) == {False, None}
        with pytest.raises(FileNotFoundError):
            SharedFilter(tmp_path, 2, name="gone")
        # When the file is there again, so is what was answered.
        for path in moved.iterdir():
            path.rename(tmp_path / path.name)
        assert shared.contains_many(items) == [True] * 100


def test_an_error_of_a_partition_is_the_cause_of_the_doubt(tmp_path):
    with SharedFilter(tmp_path, 2, max_bytes=2 * 200_000) as shared:
        items = [str(number) for number in range(1_000_000)]
        with pytest.raises(InDoubt) as raised:
            shared.add_many(items)
        assert isinstance(raised.value.__cause__, MemoryError)
        assert f"did not answer: {raised.value.__cause__}" in str(raised.value)
        with pytest.raises(TypeError):
            shared.add_many(["a", 1])


class Model:
    """What a set has of some items: True, False, or None for an item in doubt."""

    def __init__(self, name, seed):
        self.dice = random.Random(seed)
        self.items = [f"{name} {number}" for number in range(30_000)]
        self.holds = dict.fromkeys(self.items, False)
        self.calls = self.answers = self.doubts = 0

    def ask(self, shared):
        """Makes a call, and checks its answers."""
        items = self.dice.choices(self.items, k=self.dice.choice([1, 10, 1_000, 20_000]))
        what = self.dice.choice(["add_many", "add_many", "discard_many", "contains_many"])
        self.calls += 1
        try:
            answers = getattr(shared, what)(items)
        except InDoubt as doubt:
            answers = doubt.answers
            assert len(doubt.indices) == answers.count(None) > 0 and what != "contains_many"
            self.doubts += answers.count(None)
        for item, answer in zip(items, answers, strict=True):
            held = self.holds[item]
            if None not in (held, answer):
                assert answer == (held != (what == "add_many")), (what, item, held)
                self.answers += 1
            if what == "contains_many":
                # What was in doubt is known now.
                self.holds[item] = answer
            elif answer is not None:
                self.holds[item] = what == "add_many"
            elif held != (what == "add_many"):
                self.holds[item] = None

    def run(self, shared, ended):
        while not ended.is_set():
            self.ask(shared)
            if self.dice.random() < 0.05:
                shared.save()
        self.check(shared.contains_many(self.items))

    def check(self, answers):
        for item, answer in zip(self.items, answers, strict=True):
            assert self.holds[item] in (answer, None), item
            self.answers += 1


def test_what_was_answered_survives_kills(tmp_path, capsys):
    seed = int(os.environ.get("KOEL_SEED") or random.randrange(10**9))
    print(f"KOEL_SEED={seed}")
    shared = SharedFilter(tmp_path, 2, rate=1e-8)
    models = [Model(f"model {number}", seed + number) for number in range(3)]
    dice = random.Random(seed)
    ended = threading.Event()
    kills = 0
    with ThreadPoolExecutor() as threads:
        runs = [threads.submit(model.run, shared, ended) for model in models]
        try:
            until = time.monotonic() + SECONDS
            while time.monotonic() < until and not any(run.done() for run in runs):
                pid = dice.choice(pids(shared))
                time.sleep(dice.random() * dice.choice([0.01, 0.1, 1, 4]))
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    kills += 1
        finally:
            ended.set()
        for run in runs:
            run.result()
    assert sum(list(model.holds.values()).count(True) for model in models) <= len(shared)
    shared.close()
    # The partitions can be merged into one file.
    with Filter(tmp_path / "0-of-2.koel") as whole, Filter(tmp_path / "1-of-2.koel") as other:
        whole |= other
        for model in models:
            model.check(whole.contains_many(model.items))
    calls, answers, doubts = (sum(getattr(model, what) for model in models) for what in ["calls", "answers", "doubts"])
    assert kills >= SECONDS / 20 and doubts
    with capsys.disabled():
        print(f"\nchecked: {kills} kills, {calls} calls, {answers} answers, {doubts} items in doubt")


def test_the_example_keeps_one_record_of_each(tmp_path):
    (tmp_path / "in").mkdir()
    for file in range(4):
        lines = (json.dumps({"url": f"https://a.example/{number}", "file": file}) for number in range(3_000 + file * 1_000))
        without = (json.dumps({"url": None, "file": file}) for _ in range(2))
        (tmp_path / "in" / f"{file}.jsonl").write_text("\n".join([*lines, *without]))
    command = [sys.executable, str(EXAMPLE), "in", "out", "--field", "url", "--seen", "seen"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "6000 values were new."
    lines = [line for file in (tmp_path / "out").iterdir() for line in file.read_text().splitlines()]
    urls = [json.loads(line).get("url") for line in lines]
    assert urls.count(None) == 8
    assert sorted(url for url in urls if url is not None) == sorted(f"https://a.example/{number}" for number in range(6_000))
    assert files(tmp_path / "seen") == ["0-of-2.koel", "1-of-2.koel"]


def test_a_task_of_the_example_that_dies_ends_the_run(tmp_path):
    """Ray would run it again, which would take its own records for seen."""
    new_records = runpy.run_path(str(EXAMPLE))["new_records"]

    class Killing:
        def add_many(self, values):
            os.kill(os.getpid(), signal.SIGKILL)

    records = ray.data.from_items([{"url": str(number)} for number in range(100)])
    with pytest.raises(ray.exceptions.WorkerCrashedError):
        new_records(records, Killing(), "url").materialize()


def test_the_types_of_a_program_and_of_the_module(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
from typing import assert_type

from pykoel.ray import InDoubt, SharedFilter

with SharedFilter("seen", 2, rate=1e-8, options=[{"num_cpus": 1}, {}]) as seen:
    try:
        assert_type(seen.add_many(["a", "b"]), list[bool])
    except InDoubt as doubt:
        assert_type(doubt.answers, list[bool | None])
        assert_type(doubt.indices, list[int])
    assert_type(seen.add("a"), bool)
    assert_type("a" in seen, bool)
    assert_type(len(seen), int)
seen.add_many("a")
"""
    )
    own = ["-m", "pykoel.ray", "-m", "pykoel.partitions"]
    for what, wrong in [([str(program)], [15]), ([str(EXAMPLE)], []), (own, [])]:
        command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), *what]
        told = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True).stdout
        assert [int(line.split(":")[1]) for line in told.splitlines() if ": error: " in line] == wrong, told

"""The types: stubs that say what is there, and programs that are checked against them."""

import subprocess
import sys

SAMPLE = '''
import sys
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import assert_type

import numpy
from pykoel import Filter, Stats
from pykoel.partitions import Batch, InDoubt, Partitions, answer

with Filter("seen.koel", rate=1e-6, remembers=timedelta(days=7), refresh=True, sync=timedelta(seconds=5)) as seen:
    assert_type(seen, Filter)
    assert_type(seen.add("a"), bool)
    assert_type(b"a" in seen, bool)
    assert_type(len(seen), int)
    assert_type(seen.add_many(line.strip() for line in open("urls")), list[bool])
    assert_type(seen.contains_many(array("Q", [1, 2])), list[bool])
    urls = ["a", "b"]
    seen.add_many(urls)
    seen.add_many(tuple(urls))
    seen.add_many({"a", "b"})
    seen.add_many(frozenset(urls))
    seen.add_many({"a": 1})
    seen.add_many({"a": 1}.keys())
    seen.add_many({1: "a"}.values())
    seen.add_many(deque(urls))
    seen.add_many(["a", b"b"])
    seen.add_many(map(str, range(10)))
    seen.add_many(sys.stdin)
    seen.add_many(sys.stdin.buffer)
    seen.add_many(memoryview(array("Q", [1, 2])))
    seen.add_many(numpy.arange(10, dtype="u8"))
    seen.add_many(numpy.array(urls, dtype=object))
    seen.update(urls, array("Q", [1, 2]), Filter())
    assert_type(seen | Filter(), Filter)
    seen |= Filter()
    assert_type(seen.compact(), int)
    assert_type(seen.stats(), Stats)
    assert_type(seen.stats().rate, float)
    assert_type(seen.path, Path | None)
    assert_type(Filter.from_bytes(seen.to_bytes()).copy(), Filter)
    assert_type(Filter.from_bytes(bytearray(seen.to_bytes())), Filter)
    seen.save(Path("copy"))
    seen.save(b"copy")
Filter("each", sync=0).close()
Filter("by the system", sync=None).close()
assert_type(Filter("seen.koel", readonly=True).readonly, bool)

batch = Partitions(2, seed=1).split(urls)
assert_type(batch, Batch)
answers = {number: answer(seen.add_many, hashes) for number, hashes in batch.hashes.items()}
assert_type(InDoubt(batch.join(answers)).answers, list[bool | None])


def take(some: Sequence[str], more: Collection[bytes], any: Iterable[str], either: list[str] | set[bytes]) -> None:
    assert_type(seen.add_many(some), list[bool])
    seen.discard_many(more)
    seen.contains_many(iter(any))
    seen.add_many(either)
'''

WRONG = '''
from pykoel import Filter

Filter(rate="small")
Filter("seen", sync="often")
Filter().add(17)
Filter().update("https://a.example/")
Filter() | {"a"}
Filter().no_such_method()
Filter().add_many("https://a.example/")
Filter().contains_many(b"https://a.example/")
Filter().discard_many("a" + "b")
Filter().add_many(bytearray(b"a"))
Filter().add_many([1])
Filter().add_many(17)
Filter().add_many(None)
'''


def check(program, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(program)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
    return subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True).stdout


def test_stubs_say_what_is_there(tmp_path):
    command = [sys.executable, "-m", "mypy.stubtest", "pykoel._pykoel", "pykoel._stats"]
    told = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert told.returncode == 0, told.stdout


def test_a_program_is_checked(tmp_path):
    assert "Success" in (told := check(SAMPLE, tmp_path)), told
    told = check(WRONG, tmp_path)
    lines = [int(line.split(":")[1]) for line in told.splitlines() if ": error: " in line]
    wrong = [number for number, line in enumerate(WRONG.splitlines(), 1) if line.startswith("Filter(")]
    assert lines == wrong, told

"""What several files of tests have: programs that they start, the file of a filter, and every use of one."""

import copy
import os
import pickle
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pykoel import Filter

LONG = bool(os.environ.get("KOEL_LONG_TESTS"))

# In seconds. Far more than any of these programs takes on a busy machine.
LIMIT = 120

Start = Callable[..., "subprocess.Popen[Any]"]

# Every use of a filter that was made with the seed 1.
USES: dict[str, Callable[[Filter], object]] = {
    "add": lambda seen: seen.add("a"),
    "in": lambda seen: "a" in seen,
    "discard": lambda seen: seen.discard("a"),
    "remove": lambda seen: seen.remove("a"),
    "add_many": lambda seen: seen.add_many([]),
    "contains_many": lambda seen: seen.contains_many([]),
    "discard_many": lambda seen: seen.discard_many([]),
    "clear": lambda seen: seen.clear(),
    "compact": lambda seen: seen.compact(),
    "update": lambda seen: seen.update(),
    "merge": lambda seen: seen.merge(Filter(seed=1)),
    "merge itself": lambda seen: seen.merge(seen),
    "merge into another": lambda seen: Filter(seed=1).merge(seen),
    "|": lambda seen: seen | Filter(seed=1),
    "| of another": lambda seen: Filter(seed=1) | seen,
    "|=": lambda seen: seen.__ior__(Filter(seed=1)),
    "len": len,
    "stats": lambda seen: seen.stats(),
    "save": lambda seen: seen.save(),
    "save a copy": lambda seen: seen.save("copy"),
    "copy": copy.copy,
    "to_bytes": lambda seen: seen.to_bytes(),
    "pickle": pickle.dumps,
}

# Those that need no more than a file that is only read.
READS = {"in", "contains_many", "len", "stats", "copy", "pickle"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "seen.koel"


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def command(program: str, *arguments: object) -> list[str]:
    """The command that runs a program in Python, which may fork beside threads."""
    return [sys.executable, "-uW", "ignore::DeprecationWarning", "-c", textwrap.dedent(program), *map(str, arguments)]


def run(program: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs a program in a process of its own until it ends."""
    return subprocess.run(command(program, *arguments), timeout=LIMIT, capture_output=True, text=True)


@contextmanager
def copied(file: Path) -> Iterator[Filter]:
    """What a program would find that opens this filter now, which changes nothing there."""
    with TemporaryDirectory() as folder:
        for path in file.parent.glob(f"{file.name}*"):
            shutil.copy(path, folder)
        with Filter(Path(folder, file.name), create=False) as seen:
            yield seen


def until(happened: Callable[[], bool]) -> None:
    """Waits for what has to happen at some time."""
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.002)


def leave_journal(file: Path) -> None:
    """Adds an item, "new", in a process that ends as after a kill: only the journal has it."""
    program = "import os, sys, pykoel; seen = pykoel.Filter(sys.argv[1]); seen.add('new'); os._exit(0)"
    assert run(program, file).returncode == 0


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Does this in threads at once, each with its number, and waits for them. None may fail."""
    failures = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert failures == []


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs that run until the test ends, or for two minutes. Then they are killed, so that nothing waits for
    them longer."""
    started = []

    def start(command: list[str], **options: Any) -> "subprocess.Popen[Any]":
        # A program inherits that SIGINT is ignored, as it is under `nohup` and in the background of a script. A handler
        # is not inherited: the program begins with the default.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            process = subprocess.Popen(command, **options)
        finally:
            signal.signal(signal.SIGINT, before)
        limit = threading.Timer(LIMIT, process.kill)
        limit.daemon = True
        limit.start()
        started.append((process, limit))
        return process

    yield start
    for process, limit in started:
        limit.cancel()
        process.kill()
        process.wait()
        for pipe in [process.stdin, process.stdout, process.stderr]:
            if pipe is not None:
                pipe.close()

"""Programs that tests start: interruptible wherever the tests run, and gone when the test ends."""

import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

# In seconds. Far more than any of these programs takes on a busy machine.
LIMIT = 120

Start = Callable[..., "subprocess.Popen[Any]"]


@contextmanager
def running(command: list[str], **options: Any) -> Iterator["subprocess.Popen[Any]"]:
    """Runs a program until the block ends, or for two minutes. Then it is killed, so that nothing waits for it longer."""
    # A program inherits that SIGINT is ignored, as it is under `nohup` and in the background of a script. A handler is
    # not inherited: the program begins with the default.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(command, **options)
    finally:
        signal.signal(signal.SIGINT, before)
    limit = threading.Timer(LIMIT, process.kill)
    limit.daemon = True
    limit.start()
    try:
        yield process
    finally:
        limit.cancel()
        process.kill()
        process.wait()
        for pipe in [process.stdin, process.stdout, process.stderr]:
            if pipe is not None:
                pipe.close()


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts programs that run until the test ends, or for two minutes."""
    with ExitStack() as programs:
        yield lambda command, **options: programs.enter_context(running(command, **options))

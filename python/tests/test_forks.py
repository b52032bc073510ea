"""Forks: a child is told at once what it may not use, never hangs, and leaves its parent's files to it."""

import multiprocessing
import os
import signal
import subprocess
import sys

import pytest
from conftest import LONG, USES, command, files, run
from pykoel import Filter

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(work):
    """Runs this in a forked child, which has ten seconds, and returns its exit code."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            signal.alarm(10)
            work()
            code = 0
        except BaseException as error:
            print(repr(error), file=sys.stderr)
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("options", [{}, {"sync": 0}, {"remembers": 1_000}, None], ids=str)
def test_a_child_is_told_what_to_do_whatever_it_uses_of_its_parents_filter(options, file, monkeypatch):
    monkeypatch.chdir(file.parent)
    seen = Filter(seed=1) if options is None else Filter(file, seed=1, **options)
    seen.add("a")
    before = files(file.parent)

    def use():
        for name, use in USES.items():
            told = "opened before this process was forked: open it with readonly=True .* or build it in .* pickled"
            with pytest.raises(RuntimeError, match=told):
                use(seen)
                print(name, file=sys.stderr)
        # These are known without the filter.
        assert seen.path == (None if options is None else file) and not seen.readonly
        assert seen.hash_of("a") == Filter(seed=1).hash_of("a") and sys.getsizeof(seen) < 2_000
        assert "opened before a fork" in repr(seen)
        with seen:
            pass
        seen.close()

    assert in_child(use) == 0
    # Nothing of what the child did is here.
    assert files(file.parent) == before and len(seen) == 1 and "a" in seen and seen.add("b")
    seen.close()
    if options is not None:
        with Filter(file) as again:
            assert len(again) == 2


def test_a_child_of_a_child_is_told_as_well(file):
    def child():
        own = Filter(file)
        own.add("of the child")

        def grandchild():
            with pytest.raises(RuntimeError, match="forked"):
                own.add("of its child")
            with pytest.raises(RuntimeError, match="forked"):
                above.add("of its child")

        assert in_child(grandchild) == 0
        assert own.add("later")
        own.close()

    above = Filter()
    assert in_child(child) == 0
    assert len(Filter(file)) == 2


def count(seen):
    return len(seen), os.getpid()


def test_a_filter_that_is_passed_to_a_child_is_pickled():
    seen = Filter()
    seen.add_many(map(str, range(1_000)))
    with multiprocessing.get_context("fork").Pool(2) as pool:
        answers = pool.map(count, [seen] * 4)
    assert [items for items, _ in answers] == [len(seen)] * 4
    assert os.getpid() not in {process for _, process in answers}


# Threads change, save, copy, close and open filters all the time.
BUSY = """
    import os, signal, sys, threading
    from pykoel import Filter

    path, end, forks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    readable = path + ".readable"
    with Filter(readable) as seen:
        seen.add_many(map(str, range(50_000)))
    kept, memory, readonly = Filter(path), Filter(remembers=14), Filter(readable, readonly=True)
    kept.add("first")
    stop, added = threading.Event(), [0] * 3

    def write(number):
        while not stop.is_set():
            items = [f"{number}/{item}" for item in range(added[number], added[number] + 2_000)]
            kept.add_many(items)
            memory.add_many(items)
            memory.discard_many(items)
            readonly.contains_many(items)
            added[number] += 2_000

    def save():
        while not stop.is_set():
            kept.save()
            kept.copy()
            memory.to_bytes()
            with Filter(path + ".other") as other, Filter(readable, readonly=True):
                other.add("a")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(3)]
    threads.append(threading.Thread(target=save))
    for thread in threads:
        thread.start()
    # Threads take turns more often, so that a fork finds more of them in the middle of something.
    sys.setswitchinterval(0.0005)
    for _ in range(forks):
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            for seen in [kept, memory]:
                try:
                    seen.add("in the child")
                    os._exit(1)
                except RuntimeError:
                    pass
            assert "1" in readonly and sum(readonly.contains_many(map(str, range(1_000)))) == 1_000
            own = Filter()
            assert own.add_many(["a", "b"]) == [True, True]
            if end == "close":
                kept.close(), memory.close(), readonly.close(), own.close()
                os._exit(0)
            if end == "drop":
                del kept, memory, readonly, own
                os._exit(0)
            os._exit(0) if end == "os._exit" else sys.exit()
        status = os.waitpid(child, 0)[1]
        if status:
            print(status, flush=True)
            os._exit(0)
    stop.set()
    for thread in threads:
        thread.join()
    assert any(".journal." in name for name in os.listdir(os.path.dirname(path)))
    assert os.path.exists(os.path.join(os.path.dirname(path), ".seen.koel.koel-claim"))
    kept.add("last")
    print(*added, flush=True)
    if end == "os._exit":
        # As after a kill, everything is in the journal.
        os._exit(0)
"""


@pytest.mark.parametrize("end", ["os._exit", "sys.exit", "close", "drop"])
def test_a_child_ends_cleanly_and_leaves_its_parents_filter_whole(file, end):
    told = run(BUSY, file, end, 300 if LONG else 30)
    assert told.returncode == 0 and told.stderr == "", told.stderr
    added = told.stdout.split()
    assert len(added) == 3, added
    with Filter(file) as seen:
        for number, items in enumerate(map(int, added)):
            assert items > 0 and all(seen.contains_many(f"{number}/{item}" for item in range(items)))
        assert "first" in seen and "last" in seen and "in the child" not in seen


@pytest.mark.parametrize("closes", ["parent", "child"])
def test_a_child_that_lives_longer_keeps_the_file_from_others_until_its_parent_or_it_closes_the_filter(
    start, file, closes
):
    program = """
        import os, sys, pykoel
        seen = pykoel.Filter(sys.argv[1])
        seen.add("a")
        child = os.fork()
        if child == 0:
            sys.stdin.readline()
            if sys.argv[2] == "child":
                seen.close()
            print("closed")
            sys.stdin.readline()
            os._exit(0)
        if sys.argv[2] == "parent":
            seen.close()
        print(child)
        os._exit(0)
    """
    parent = start(command(program, file, closes), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    child = int(parent.stdout.readline())
    try:
        assert parent.wait() == 0
        if closes == "child":
            with pytest.raises(BlockingIOError):
                Filter(file)
            parent.stdin.write("\n")
            parent.stdin.flush()
            assert parent.stdout.readline() == "closed\n"
        with Filter(file) as seen:
            assert "a" in seen
    finally:
        os.kill(child, signal.SIGKILL)

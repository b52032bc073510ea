"""Filters with a file survive their process: whatever was answered is there again, however the process ends."""

import contextlib
import errno
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta

import pytest
from conftest import command, files, in_threads, leave_journal, run
from pykoel import Filter

MANY = [str(item) for item in range(100_000)]


@contextlib.contextmanager
def limited(size):
    """Limits the size of files. A write beyond it is an error as that of a full disk is, with a number of its own."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)


# What a process does before it is killed, and which of the items a, b and c are there then.
@pytest.mark.parametrize(
    ("work", "there"),
    [
        ("pass", ""),
        ("seen.add('a')", "a"),
        ("seen.add_many(iter('abc'))", "abc"),
        ("seen.update(iter('ab'), ['c'])", "abc"),
        ("seen.merge(other)", "abc"),
        ("seen |= other", "abc"),
        ("seen |= other; seen.discard('a')", "bc"),
        ("seen |= other; seen.remove('a')", "bc"),
        ("seen |= other; seen.discard_many(['a', 'c'])", "b"),
        ("seen.add('a'); seen.clear(); seen.add('b')", "b"),
        ("seen.add('a'); seen.add('b'); seen.save(); seen.discard('a'); seen.add('c')", "bc"),
        ("seen.update(many); seen.discard_many(many); assert seen.compact() > 0; seen.add('a')", "a"),
    ],
)
def test_a_killed_process_loses_nothing_that_was_answered(file, work, there):
    program = f"""
        import os, sys
        from pykoel import Filter
        filters, many = [], [str(item) for item in range(50_000)]
        for sync in [1.0, 0, None]:
            for remembers in [None, 1_000]:
                options = dict(seed=1, remembers=remembers, refresh=remembers is not None)
                seen, other = Filter(f"{{sys.argv[1]}}-{{sync}}-{{remembers}}", sync=sync, **options), Filter(**options)
                other.update(iter("abc"))
                {work}
                # Until the kill, none is closed.
                filters.append(seen)
        os.kill(os.getpid(), 9)
    """
    assert run(program, file).returncode == -signal.SIGKILL
    states = [f"seen.koel-{sync}-{remembers}" for sync in [0, 1.0, None] for remembers in [1_000, None]]
    for state in states:
        with Filter(file.with_name(state)) as seen:
            assert "".join(item for item in "abc" if item in seen) == there and len(seen) == len(there)
            assert seen.remembers == (None if "None" in state.split("-")[2] else 1_008)
    assert files(file.parent) == states


# A way for a program to end, and whether this is a normal end of the interpreter.
ENDS = {
    "": True,
    "raise SystemExit(3)": True,
    "raise ValueError": True,
    "threading.Thread(target=lambda: (time.sleep(0.2), seen.add('b'))).start()": True,
    "atexit.register(seen.add, 'b')": True,
    "os._exit(0)": False,
    "os.kill(os.getpid(), 15)": False,
}


@pytest.mark.parametrize(("end", "is_normal"), ENDS.items())
def test_a_normal_end_of_the_interpreter_closes_the_filters_that_are_open(file, end, is_normal):
    program = f"""
        import atexit, ctypes, os, sys, threading, time
        from pykoel import Filter
        seen, other = Filter(sys.argv[1]), Filter(sys.argv[1] + ".other")
        # Something refers to it for ever.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(seen))
        seen.add("a")
        other.add("a")
        {end}
    """
    ended = run(program, file)
    assert ("Traceback" in ended.stderr) == ("ValueError" in end), ended.stderr
    assert (files(file.parent) == ["seen.koel", "seen.koel.other"]) == is_normal
    with Filter(file) as seen, Filter(f"{file}.other") as other:
        assert "a" in seen and "a" in other and ("b" in seen) == ("'b'" in end)


def test_a_daemon_thread_finds_the_filter_closed_at_the_end_of_the_interpreter(file):
    program = """
        import atexit, sys, threading, time
        from itertools import count

        found, added = threading.Event(), []
        # It runs after those that are registered later.
        atexit.register(found.wait, 60)
        from pykoel import Filter

        def use(seen):
            try:
                for number in count():
                    seen.add_many(f"{number}/{item}" for item in range(100))
                    added.append(number)
            except ValueError as error:
                print(error, len(added), flush=True)
                found.set()

        seen = Filter(sys.argv[1])
        threading.Thread(target=use, args=(seen,), daemon=True).start()
        while not added:
            time.sleep(0.001)
    """
    ended = run(program, file)
    *what, count = ended.stdout.split()
    assert ended.returncode == 0 and " ".join(what) == "this filter is closed"
    assert files(file.parent) == ["seen.koel"]
    with Filter(file) as seen:
        assert all(seen.contains_many(f"{number}/{item}" for number in range(int(count)) for item in range(100)))


def test_an_error_of_a_filter_that_is_closed_at_the_end_is_told_and_the_others_are_closed(file):
    program = """
        import resource, sys
        from pykoel import Filter
        seen = [Filter(sys.argv[1] + name) for name in ["", ".2", ".3"]]
        seen[1].add_many(map(str, range(100_000)))
        seen[2].add("a")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, resource.RLIM_INFINITY))
    """
    told = run(program, file).stderr
    assert told.count("Exception ignored in: 'closing a pykoel.Filter, whose journal has what") == 1
    assert f"[Errno {errno.EFBIG}]" in told and f"{file}.2" in told
    journals = [name for name in files(file.parent) if "journal" in name]
    assert {name.rsplit(".", 1)[0] for name in journals} == {"seen.koel.2.journal"}
    assert [name for name in files(file.parent) if name not in journals] == ["seen.koel", "seen.koel.2", "seen.koel.3"]
    with Filter(f"{file}.2") as many, Filter(f"{file}.3") as one:
        assert all(many.contains_many(MANY)) and "a" in one


@pytest.mark.parametrize("closes", ["close", "del"])
def test_a_close_that_fails_is_told_and_leaves_everything_in_the_journal(file, monkeypatch, closes):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_value))
    seen = Filter(file)
    seen.add_many(MANY)
    with limited(1 << 16):
        if closes == "close":
            with pytest.raises(OSError) as caught:
                seen.close()
            assert seen.closed
            told.append(caught.value)
        del seen
    (error,) = told
    assert error.errno == errno.EFBIG and str(file) in str(error)
    with Filter(file) as seen:
        assert all(seen.contains_many(MANY))


def test_a_full_disk_is_an_error_of_the_call_and_nothing_is_lost(file):
    seen, added = Filter(file, seed=1), []
    with limited(2 << 20):
        with pytest.raises(OSError, match="nothing has changed") as caught:
            while seen.add(f"one by one {len(added)}"):
                added.append(f"one by one {len(added)}")
        assert caught.value.errno == errno.EFBIG and f"one by one {len(added)}" not in seen
        with pytest.raises(OSError) as caught:
            seen.add_many(map(str, range(1_000_000)))
        assert caught.value.errno == errno.EFBIG
        # What needs no room goes on.
        assert not seen.add(added[0]) and all(seen.contains_many(added))
    assert seen.add("there is room again")
    seen.close()
    assert all(Filter(file).contains_many([*added, "there is room again"]))


@pytest.mark.parametrize("sync", [1.0, 0, None, timedelta(seconds=2), timedelta(0), 1e-3, float("inf")], ids=str)
def test_a_filter_that_was_closed_leaves_one_file(file, sync):
    with Filter(file, sync=sync) as seen:
        seen.add_many(MANY)
    assert files(file.parent) == ["seen.koel"]
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    seen = Filter(copy, sync=sync)
    assert all(seen.contains_many(MANY))
    # Nothing has changed, so nothing is written. Nothing refers to it any more, so it is closed.
    before = copy.stat().st_mtime_ns
    del seen
    assert copy.stat().st_mtime_ns == before and files(file.parent) == ["copy", "seen.koel"]


def test_a_journal_with_changes_is_lost_neither_by_a_copy_nor_with_its_state(file):
    leave_journal(file)
    (journal,) = [name for name in files(file.parent) if ".journal." in name]
    other = Filter()
    with pytest.raises(FileExistsError, match=r"call Filter\(path\).close\(\) first") as caught:
        other.save(file)
    assert caught.value.filename == str(file)
    away = file.rename(file.with_name("away"))
    with pytest.raises(ValueError, match=journal):
        Filter(file)
    with pytest.raises(FileNotFoundError):
        Filter(file, create=False)
    assert not file.exists()
    # Nor does it belong to another state, which is not saved beside it.
    with pytest.raises(FileExistsError):
        other.save(file)
    other.save(file.with_name("other"))
    file.with_name("other").rename(file)
    with pytest.raises(ValueError, match=f"{journal}: it has changes of a state that is not beside it"):
        Filter(file)
    away.rename(file)
    Filter(file).close()
    assert "new" in Filter(file, readonly=True)
    other.save(file)
    assert "new" not in Filter(file)


def test_a_merge_is_in_the_file_before_anybody_sees_it(file):
    program = """
        import os, sys, threading
        from pykoel import Filter
        seen, other = Filter(sys.argv[1], seed=5), Filter(seed=5)
        other.add_many(map(str, range(300_000)))
        def look():
            while "299999" not in seen:
                pass
            os.kill(os.getpid(), 9)
        threading.Thread(target=look).start()
        seen.merge(other)
        threading.Event().wait()
    """
    assert run(program, file).returncode == -signal.SIGKILL
    with Filter(file) as seen:
        assert all(seen.contains_many(map(str, range(300_000))))


def test_filters_merge_with_themselves_and_with_each_other_at_once(file):
    a, b = Filter(file, seed=1), Filter(file.with_name("b"), seed=1)
    a.add("a")
    b.add("b")
    assert a.merge(a) == 0
    in_threads(2, lambda number: [a.merge(b) if number else b.merge(a) for _ in range(10)])
    assert len(a) == len(b) == 2
    b.close()
    with pytest.raises(ValueError, match="closed"):
        a.merge(b)


def test_whoever_waits_for_the_disk_lets_others_run(file):
    counts, stop, ran = [0], threading.Event(), 0

    def count():
        while not stop.is_set():
            counts[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    # So long, nobody loses the interpreter's lock who does not let it go.
    sys.setswitchinterval(100)
    try:
        thread.start()
        with Filter(file, sync=0) as seen:
            for item in range(20):
                before = counts[0]
                seen.add(str(item))
                ran += counts[0] > before
        seen = Filter(file)
        seen.add("a")
        before = counts[0]
        # This closes it.
        del seen
        ran_beside_drop = counts[0] > before
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()
    assert ran > 0 and ran_beside_drop


# A program that lasts: one that waits for a file, and one with a step that is not Python's own, which would notice a
# signal, and a list of answers that grows slowly.
@pytest.mark.parametrize("lasts", ["Filter(sys.argv[1], wait=100)", "Filter().contains_many(repeat('x' * 500_000))"])
def test_an_interrupt_ends_what_lasts(start, file, lasts):
    program = f"import sys; from itertools import repeat; from pykoel import Filter; print(); {lasts}"
    with Filter(file):
        child = start(command(program, file), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.readline()
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in child.communicate()[1]

"""Filters with a file survive their process: whatever was answered is there again, after a kill at any moment."""

import contextlib
import errno
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest
from conftest import running
from pykoel import Filter

LONG = bool(os.environ.get("KOEL_LONG_TESTS"))


def rounds(short, long):
    return long if LONG else short


@pytest.fixture
def file(tmp_path):
    return tmp_path / "seen.koel"


def files(file):
    """The names beside a filter, and its own."""
    return sorted(path.name for path in file.parent.iterdir())


def run(program, *arguments):
    """Runs a program in a process of its own, and returns its exit code."""
    command = [sys.executable, "-c", "if True:\n" + program, *map(str, arguments)]
    return subprocess.run(command, timeout=120).returncode


@contextlib.contextmanager
def limited(size):
    """Limits the size of files. A write beyond it is an error as that of a full disk is."""
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, unlimited[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)


# Threads add, remove and look up items of their own, and note each answer before they go on.
WORK = """
    import datetime, os, random, sys, threading
    from pykoel import Filter

    path, notes, sync, first = sys.argv[1], sys.argv[2], eval(sys.argv[3]), int(sys.argv[4])
    seen = Filter(path, sync=sync)

    def note(file, sign, items):
        # What is written survives a kill.
        os.write(file, "".join(f"{sign}{item}\\n" for item in items).encode())

    def work(number):
        file = os.open(f"{notes}/{first}-{number}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        dice, item = random.Random(number), 0
        while True:
            own = [f"{first}/{number}/{item + some}" for some in range(dice.choice([1, 1, 1, 50, 5_000]))]
            item += len(own)
            if len(own) == 1:
                seen.add(own[0])
            else:
                seen.add_many(own)
            note(file, "+", own)
            if dice.random() < 0.3:
                gone = dice.sample(own, (len(own) + 1) // 2)
                # Without a note, it may be there or not.
                note(file, "?", gone)
                if len(gone) == 1:
                    seen.discard(gone[0])
                else:
                    seen.discard_many(gone)
                note(file, "-", gone)

    for number in range(4):
        threading.Thread(target=work, args=(number,)).start()
    print(flush=True)
    while True:
        if random.random() < 0.5:
            seen.save()
        threading.Event().wait(random.random() / 20)
"""


def noted(folder):
    """What threads have noted: the last sign of each item."""
    signs = {}
    for file in folder.iterdir():
        for line in file.read_text().split("\n")[:-1]:
            signs[line[1:]] = line[0]
    return signs


@pytest.mark.parametrize("sync", ["1.0", "0", "None", "datetime.timedelta(milliseconds=5)"])
def test_a_killed_process_loses_nothing_that_was_answered(file, tmp_path, sync):
    notes = tmp_path / "notes"
    notes.mkdir()
    dice = random.Random(1)
    for kill in range(rounds(3, 12)):
        command = [sys.executable, "-c", "if True:" + WORK, str(file), str(notes), sync, str(kill)]
        with running(command, stdout=subprocess.PIPE) as process:
            process.stdout.readline()
            time.sleep(dice.random() * 0.3)
        with Filter(file) as seen:
            signs = noted(notes)
            added = [item for item, sign in signs.items() if sign == "+"]
            gone = [item for item, sign in signs.items() if sign == "-"]
            assert added and all(seen.contains_many(added))
            # One in a million is taken for another item.
            assert sum(seen.contains_many(gone)) <= 2
    assert gone
    assert files(file) == ["notes", "seen.koel"]


def test_a_filter_that_forgets_survives_as_well(file):
    program = """
        import os, sys
        from pykoel import Filter
        seen = Filter(sys.argv[1], remembers=1000, refresh=True)
        if sys.argv[2] == "use":
            seen.add("a")
            seen.add("a")
            seen.discard("b")
        os.kill(os.getpid(), 9)
    """
    # The first one ends when the file has just been made: what it tells of the time is there.
    for what in ["make", "use"]:
        assert run(program, file, what) == -signal.SIGKILL
    with Filter(file) as seen:
        assert seen.remembers == 1008 and "a" in seen and len(seen) == 1


def test_a_filter_that_nothing_refers_to_any_more_is_closed(file):
    seen = Filter(file)
    seen.add("a")
    del seen
    assert files(file) == ["seen.koel"] and "a" in Filter(file)


def test_an_error_of_a_filter_that_nothing_refers_to_any_more_is_told_and_nothing_is_lost(file, monkeypatch):
    told = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: told.append(unraisable.exc_value))
    seen = Filter(file)
    seen.add_many(map(str, range(100_000)))
    with limited(1 << 16):
        del seen
    (error,) = told
    assert error.errno == errno.EFBIG and str(file) in str(error)
    assert all(Filter(file).contains_many(map(str, range(100_000))))


# A way for a program to end, and whether this is a normal end of the interpreter.
ENDS = {
    "": True,
    "raise SystemExit(3)": True,
    "raise ValueError": True,
    "threading.Thread(target=lambda: (time.sleep(0.2), seen.add('b'))).start()": True,
    "atexit.register(seen.add, 'b')": True,
    "os._exit(0)": False,
    "os.kill(os.getpid(), 9)": False,
    "os.kill(os.getpid(), 15)": False,
}


@pytest.mark.parametrize(("end", "is_normal"), ENDS.items())
def test_a_normal_end_of_the_interpreter_closes_the_filters_that_are_open(file, end, is_normal):
    program = f"""if True:
        import atexit, ctypes, os, sys, threading, time
        from pykoel import Filter
        seen, other = Filter(sys.argv[1]), Filter(sys.argv[1] + ".other")
        # Something refers to it for ever.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(seen))
        seen.add("a")
        other.add("a")
        {end}
    """
    command = [sys.executable, "-c", program, str(file)]
    ended = subprocess.run(command, timeout=120, stderr=subprocess.PIPE, text=True)
    assert ("Traceback" in ended.stderr) == ("ValueError" in end), ended.stderr
    assert (files(file) == ["seen.koel", "seen.koel.other"]) == is_normal
    with Filter(file) as seen, Filter(f"{file}.other") as other:
        assert "a" in seen and "a" in other and ("b" in seen) == ("'b'" in end)


def test_a_daemon_thread_finds_the_filter_closed_at_the_end_of_the_interpreter(file):
    program = """if True:
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
    ended = subprocess.run([sys.executable, "-c", program, str(file)], timeout=120, stdout=subprocess.PIPE, text=True)
    *what, count = ended.stdout.split()
    assert ended.returncode == 0 and " ".join(what) == "this filter is closed"
    assert files(file) == ["seen.koel"]
    with Filter(file) as seen:
        assert all(seen.contains_many(f"{number}/{item}" for number in range(int(count)) for item in range(100)))


def test_an_error_of_a_filter_that_is_closed_at_the_end_is_told_and_the_others_are_closed(file):
    program = """if True:
        import resource, sys
        from pykoel import Filter
        seen = [Filter(sys.argv[1] + name) for name in ["", ".2", ".3"]]
        seen[1].add_many(map(str, range(100_000)))
        seen[2].add("a")
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 18, resource.RLIM_INFINITY))
    """
    ended = subprocess.run([sys.executable, "-c", program, str(file)], timeout=120, stderr=subprocess.PIPE, text=True)
    assert ended.stderr.count("Exception ignored in: 'closing a pykoel.Filter, whose journal has what") == 1
    assert f"[Errno {errno.EFBIG}]" in ended.stderr and f"{file}.2" in ended.stderr
    assert [name for name in files(file) if "journal" not in name] == ["seen.koel", "seen.koel.2", "seen.koel.3"]
    assert {name.rsplit(".", 1)[0] for name in files(file) if "journal" in name} == {"seen.koel.2.journal"}
    with Filter(f"{file}.2") as many, Filter(f"{file}.3") as one:
        assert all(many.contains_many(map(str, range(100_000)))) and "a" in one


def test_clear_survives(file):
    program = """
        import os, sys
        from pykoel import Filter
        seen = Filter(sys.argv[1])
        seen.add("before")
        seen.clear()
        seen.add("after")
        os.kill(os.getpid(), 9)
    """
    assert run(program, file) == -signal.SIGKILL
    with Filter(file) as seen:
        assert "before" not in seen and "after" in seen


def test_a_filter_is_compacted_while_it_has_a_journal(file):
    program = """
        import os, sys
        from pykoel import Filter
        seen = Filter(sys.argv[1])
        seen.add_many(map(str, range(300_000)))
        seen.save()
        gone = [str(item) for item in range(20_000, 300_000)]
        seen.discard_many(gone)
        before = seen.stats().size_in_bytes
        assert seen.compact() > before / 2 > seen.stats().size_in_bytes
        if sys.argv[2] == "save":
            seen.save()
        # What comes afterwards is on record as ever.
        seen.add("afterwards")
        seen.discard("0")
        os.kill(os.getpid(), 9)
    """
    sizes = []
    for what in ["kill", "save"]:
        file.unlink(missing_ok=True)
        assert run(program, file, what) == -signal.SIGKILL
        sizes.append(file.stat().st_size)
        with Filter(file) as seen:
            assert all(seen.contains_many(map(str, range(1, 20_000)))) and "afterwards" in seen
            assert sum(seen.contains_many(["0", *map(str, range(20_000, 300_000))])) <= 2
    assert sizes[1] < sizes[0] / 2


def test_the_file_of_a_compacted_filter_gets_smaller_with_the_next_save(file):
    with Filter(file) as seen:
        seen.add_many(map(str, range(300_000)))
        seen.discard_many(map(str, range(20_000, 300_000)))
        seen.save()
        before = file.stat().st_size
        assert seen.compact() > 0
        seen.save()
        assert file.stat().st_size < before / 2
    with Filter(file) as seen:
        assert seen.compact() == 0 and all(seen.contains_many(map(str, range(20_000))))


def threads():
    """The threads of this process, each with its name and state, as the system tells them."""
    for thread in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError):
            name, state = thread.joinpath("stat").read_text().split("(")[1].rsplit(") ", 1)
            yield thread.name, name, state[0]


def opened(file):
    """Opens a filter, and waits until its thread for checkpoints sleeps. It begins with a look for what an earlier
    process has left: beside a save, it sees two journals as well, and makes a checkpoint of its own."""
    before = {number for number, _, _ in threads()}
    seen = Filter(file)
    until = time.monotonic() + 60
    while not any(name == "koel-checkpoint" and state == "S" for number, name, state in threads() if number not in before):
        assert time.monotonic() < until
        time.sleep(0.001)
    return seen


def test_a_save_is_a_checkpoint(file):
    """The file alone has what was added before it, and the journal the rest."""
    seen = opened(file)
    seen.add("a")
    assert "a" not in Filter.from_bytes(file.read_bytes())
    seen.save()
    seen.add("b")
    alone = Filter.from_bytes(file.read_bytes())
    assert "a" in alone and "b" not in alone
    assert len(files(file)) == 3 and ".seen.koel.koel-claim" in files(file)
    seen.close()
    assert files(file) == ["seen.koel"]


@pytest.mark.parametrize("sync", [1.0, 0, None, timedelta(seconds=2)])
def test_a_filter_that_was_closed_leaves_one_file(file, sync):
    with Filter(file, sync=sync) as seen:
        seen.add_many(map(str, range(10_000)))
    assert files(file) == ["seen.koel"]
    copy = file.with_name("copy")
    shutil.copy(file, copy)
    with Filter(copy, sync=sync) as seen:
        assert all(seen.contains_many(map(str, range(10_000))))
    # Nothing has changed, so nothing is written.
    before = file.stat()
    Filter(file, sync=sync).close()
    assert file.stat() == before or file.stat().st_mtime_ns == before.st_mtime_ns
    assert files(file) == ["copy", "seen.koel"]


def test_a_refused_filter_leaves_its_file_as_it_is(file):
    Filter(file).close()
    before = file.stat().st_mtime_ns
    for options in [{"seed": 1}, {"remembers": 60}, {"rate": 1e-12}, {"refresh": True}]:
        with pytest.raises(ValueError):
            Filter(file, **options)
    assert files(file) == ["seen.koel"] and file.stat().st_mtime_ns == before
    with pytest.raises(ValueError, match="refresh"):
        Filter(file.with_name("other"), refresh=True)
    assert files(file) == ["seen.koel"]


def test_sync_is_a_period_of_a_filter_with_a_file(file):
    for sync in [-1, float("nan"), timedelta(seconds=-1)]:
        with pytest.raises(ValueError, match="sync"):
            Filter(file, sync=sync)
    for sync in ["often", b"1", [1]]:
        with pytest.raises(TypeError, match="must be real number"):
            Filter(file, sync=sync)
    for sync in [1.0, 0, None]:
        with pytest.raises(ValueError, match="with a file"):
            Filter(sync=sync)
    assert files(file) == []
    for sync in [float("inf"), 1e-3, timedelta(0)]:
        with Filter(file, sync=sync) as seen:
            seen.add("a")


def test_journals_without_their_state_are_refused(file):
    program = """
        import os, sys, pykoel
        seen = pykoel.Filter(sys.argv[1])
        seen.add("a")
        os.kill(os.getpid(), 9)
    """
    assert run(program, file) == -signal.SIGKILL
    (journal,) = [name for name in files(file) if ".journal." in name]
    away = file.rename(file.with_name("away"))
    with pytest.raises(ValueError, match=journal):
        Filter(file)
    with pytest.raises(FileNotFoundError):
        Filter(file, create=False)
    assert not file.exists()
    # Nor do they belong to another state, which is not saved beside them.
    with pytest.raises(FileExistsError):
        Filter().save(file)
    Filter().save(file.with_name("other"))
    file.with_name("other").rename(file)
    with pytest.raises(ValueError, match=f"{journal}: it has changes of a state that is not beside it"):
        Filter(file)
    away.rename(file)
    assert "a" in Filter(file)


def test_a_copy_replaces_no_file_whose_journal_has_changes(file):
    program = """
        import os, sys, pykoel
        seen = pykoel.Filter(sys.argv[1])
        seen.add("a")
        os._exit(0)
    """
    assert run(program, file) == 0
    other = Filter()
    with pytest.raises(FileExistsError, match=r"call Filter\(path\).close\(\) first") as caught:
        other.save(file)
    assert caught.value.filename == str(file)
    Filter(file).close()
    assert "a" in Filter(file, readonly=True)
    other.save(file)
    assert "a" not in Filter(file)


def test_a_full_disk_is_an_error_of_the_call_and_nothing_is_lost(file):
    """The limit of a file's size is an error as a full disk is, with a number of its own."""
    program = """
        import errno, os, resource, sys
        from pykoel import Filter
        seen = Filter(sys.argv[1])
        resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, resource.RLIM_INFINITY))
        added = 0
        try:
            while True:
                assert seen.add(f"one by one {added}")
                added += 1
        except OSError as error:
            assert error.errno == errno.EFBIG, error
            assert "nothing has changed" in str(error), error
        assert f"one by one {added}" not in seen
        answered = []
        try:
            seen.add_many(map(str, range(1_000_000)))
        except OSError as error:
            assert error.errno == errno.EFBIG, error
        # What needs no room goes on.
        assert not seen.add("one by one 0") and all(f"one by one {item}" in seen for item in range(added))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert seen.add("there is room again")
        print(added, flush=True)
        os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", "if True:" + program, str(file)]
    told = subprocess.run(command, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert told.returncode == -signal.SIGKILL, told.stderr
    with Filter(file) as seen:
        assert all(f"one by one {item}" in seen for item in range(int(told.stdout)))
        assert "there is room again" in seen


def test_a_close_that_fails_leaves_everything_in_the_journal(file):
    seen = Filter(file)
    seen.add_many(map(str, range(100_000)))
    with limited(1 << 16), pytest.raises(OSError) as caught:
        seen.close()
    assert caught.value.errno == errno.EFBIG and seen.closed
    with Filter(file) as seen:
        assert all(seen.contains_many(map(str, range(100_000))))


def test_a_limit_of_memory_is_kept_and_outlives_a_kill(file):
    program = """
        import os, sys
        from pykoel import Filter
        seen = Filter(sys.argv[1], max_bytes=200_000)
        for added in range(1_000_000):
            try:
                seen.add(str(added))
            except MemoryError:
                break
        print(added, flush=True)
        os.kill(os.getpid(), 9)
    """
    command = [sys.executable, "-c", "if True:" + program, str(file)]
    told = subprocess.run(command, timeout=120, stdout=subprocess.PIPE)
    added = int(told.stdout)
    assert 0 < added < 100_000
    with Filter(file, max_bytes=200_000) as seen:
        assert all(seen.contains_many(map(str, range(added))))
        with pytest.raises(MemoryError):
            seen.add_many(map(str, range(1_000_000)))


def test_a_merge_is_in_the_file_before_anybody_sees_it(file, tmp_path):
    program = """
        import os, sys, threading
        from pykoel import Filter
        seen, other = Filter(sys.argv[1], seed=5), Filter(sys.argv[2], seed=5)
        def look():
            while "299999" not in seen:
                pass
            os.kill(os.getpid(), 9)
        if sys.argv[3] == "look":
            threading.Thread(target=look).start()
        assert seen.merge(other) > 299_000
        if sys.argv[3] == "merge":
            os.kill(os.getpid(), 9)
        threading.Event().wait()
    """
    with Filter(tmp_path / "other", seed=5) as other:
        other.add_many(map(str, range(300_000)))
    for what in ["look", "merge"]:
        file.unlink(missing_ok=True)
        assert run(program, file, tmp_path / "other", what) == -signal.SIGKILL
        with Filter(file) as seen:
            assert all(seen.contains_many(map(str, range(300_000))))


def test_filters_merge_with_themselves_and_with_each_other_at_once(file):
    a, b = Filter(file, seed=1), Filter(file.with_name("b"), seed=1)
    a.add("a")
    b.add("b")
    assert a.merge(a) == 0

    def merge(into, other):
        for _ in range(10):
            into.merge(other)

    threads = [threading.Thread(target=merge, args=pair) for pair in [(a, b), (b, a)]]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert len(a) == len(b) == 2
    b.close()
    with pytest.raises(ValueError, match="closed"):
        a.merge(b)


def test_whoever_waits_for_a_file_can_be_interrupted(start, file):
    program = """
        import sys
        from pykoel import Filter
        print(flush=True)
        Filter(sys.argv[1], wait=100)
    """
    with Filter(file):
        command = [sys.executable, "-c", "if True:" + program, str(file)]
        waits = start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        waits.stdout.readline()
        time.sleep(0.2)
        waits.send_signal(signal.SIGINT)
        assert b"KeyboardInterrupt" in waits.communicate()[1]


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

"""Filters that are read in their files: by many processes and threads, and never changed."""

import concurrent.futures
import copy
import errno
import io
import multiprocessing
import os
import pickle
import re
import subprocess
import sys
import threading
import time
import warnings
from array import array

import pytest
from pykoel import Filter

ITEMS = [f"https://example.org/{number}" for number in range(90_000)]
OTHERS = [f"https://example.net/{number}" for number in range(1_000)]


@pytest.fixture
def file(tmp_path):
    with Filter(tmp_path / "seen.koel", rate=1e-6, seed=7) as seen:
        seen.add_many(ITEMS)
    return tmp_path / "seen.koel"


def test_it_answers_as_the_filter_that_was_saved(file):
    with Filter(file, readonly=True) as seen:
        assert all(item in seen for item in ITEMS[:2_000]) and ITEMS[0].encode() in seen
        assert all(seen.contains_many(ITEMS)) and not any(seen.contains_many(OTHERS))
        assert not any(item in seen for item in OTHERS)
        assert seen.contains_many(array("Q", [seen.hash_of(ITEMS[0])])) == [True]
        assert seen.contains_many([]) == []
        assert len(seen) == 90_000 and seen.path == file and seen.readonly and not seen.closed
        assert repr(seen) == f"<pykoel.Filter {str(file)!r}, readonly, 90000 items>".replace("'", '"')
        stats = seen.stats()
        assert stats.items == 90_000 and 0 < stats.rate <= stats.rate_at_capacity <= 1e-6 and 0 < stats.load < 1
        assert sys.getsizeof(seen) < 10_000 and stats.size_in_bytes < 10_000 < len(file.read_bytes())
    assert seen.closed
    uses = [lambda: ITEMS[0] in seen, lambda: len(seen), lambda: seen.contains_many([]), seen.stats, seen.copy]
    for use in [*uses, seen.save, lambda: seen.add("a"), lambda: pickle.dumps(seen)]:
        with pytest.raises(ValueError, match="closed"):
            use()
    seen.close()


def test_what_changes_a_filter_or_would_load_it_is_refused(file):
    before = file.read_bytes()
    with Filter(file, readonly=True) as seen, Filter(seed=7, rate=1e-6) as other:
        for change in [
            lambda: seen.add("a"),
            lambda: seen.discard(ITEMS[0]),
            lambda: seen.remove(ITEMS[0]),
            lambda: seen.add_many(["a"]),
            lambda: seen.add_many([]),
            lambda: seen.discard_many(ITEMS[:2]),
            lambda: seen.update(["a"]),
            lambda: seen.update(),
            lambda: seen.merge(other),
            lambda: seen.__ior__(other),
            seen.clear,
            seen.compact,
            seen.save,
            # These would load it.
            lambda: seen.save(file.with_name("copy")),
            seen.to_bytes,
            lambda: other.merge(seen),
            lambda: seen | other,
            lambda: other | seen,
        ]:
            with pytest.raises(io.UnsupportedOperation, match="readonly=True"):
                change()
        assert len(seen) == 90_000 and all(seen.contains_many(ITEMS))
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["seen.koel"]


def test_a_copy_may_be_changed_saved_and_merged(file):
    with Filter(file, readonly=True) as seen:
        for changed in [seen.copy(), copy.copy(seen), copy.deepcopy(seen)]:
            assert not changed.readonly and changed.path is None
            assert changed.add("new") and len(changed) == 90_001
        other = Filter(seed=7, rate=1e-6)
        other.add("other")
        assert other.merge(seen.copy()) == 90_000 and len(seen.copy() | other) == 90_001
        seen.copy().save(file.with_name("copy"))
        assert "new" not in seen
    assert len(Filter(file.with_name("copy"))) == 90_000


def test_the_file_may_be_replaced_or_removed(file):
    seen = Filter(file, readonly=True)
    with Filter(file) as writer:
        assert writer.add("new") and all(writer.discard_many(ITEMS[:1_000]))
        # What is only in the journal is not seen, nor a checkpoint.
        with pytest.warns(RuntimeWarning):
            assert "new" not in Filter(file, readonly=True)
        writer.save()
        assert "new" in Filter(file, readonly=True) and "new" not in seen
    file.unlink()
    assert all(seen.contains_many(ITEMS)) and "new" not in seen and len(seen.copy()) == 90_000
    with pytest.raises(FileNotFoundError):
        Filter(file, readonly=True)


def test_changes_that_only_a_journal_has_are_warned_of_until_the_filter_is_closed(file):
    program = """if True:
        import os, sys
        from pykoel import Filter
        seen = Filter(sys.argv[1])
        seen.add("new")
        os._exit(0)
    """
    subprocess.run([sys.executable, "-c", program, str(file)], check=True, timeout=60)
    (journal,) = file.parent.glob("seen.koel.journal.*")
    with pytest.warns(RuntimeWarning) as caught:
        assert "new" not in Filter(file, readonly=True)
    (warning,) = caught
    assert warning.filename == __file__
    what = r"seen.koel: readonly=True does not read its journal, which has (\d+) bytes of changes"
    (told,) = re.findall(what, str(warning.message))
    assert 0 < int(told) <= journal.stat().st_size
    Filter(file).close()
    with warnings.catch_warnings(action="error"):
        assert "new" in Filter(file, readonly=True)


def test_a_warning_that_is_an_error_opens_nothing(file):
    with Filter(file) as writer:
        writer.add("new")
        with warnings.catch_warnings(action="error"), pytest.raises(RuntimeWarning, match="does not read its journal"):
            Filter(file, readonly=True)
        writer.save()
        with warnings.catch_warnings(action="error"):
            assert "new" in Filter(file, readonly=True)


def test_what_had_expired_when_it_was_saved_is_gone(tmp_path):
    file = tmp_path / "seen.koel"
    with Filter(file, remembers=1) as seen:
        seen.add("a")
        time.sleep(2.1)
        seen.add("b")
    seen = Filter(file, readonly=True, remembers=1)
    assert "a" not in seen and seen.remembers == 1
    time.sleep(2.1)
    assert "b" in seen and "b" not in seen.copy()


def test_errors_are_pythons_own(file, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        Filter(tmp_path / "none", readonly=True)
    assert caught.value.filename == str(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        Filter(tmp_path, readonly=True)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular file") as caught:
        Filter(tmp_path / "pipe", readonly=True)
    assert caught.value.errno == errno.EINVAL
    for bad in [b"", b"GIF89a", file.read_bytes()[:-1], file.read_bytes()[:1_000], file.read_bytes() + b"x"]:
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(ValueError, match="bad: "):
            Filter(tmp_path / "bad", readonly=True)
    for options in [{"refresh": True}, {"max_bytes": 1 << 30}, {"sync": 0}, {"sync": None}, {"wait": 1}]:
        with pytest.raises(ValueError, match="leave them out with readonly=True"):
            Filter(file, readonly=True, **options)
    with pytest.raises(ValueError, match="readonly"):
        Filter(readonly=True)
    for options, what in [({"rate": 1e-9}, "rate"), ({"remembers": 60}, "remembers"), ({"seed": 6}, "seed")]:
        with pytest.raises(ValueError, match=what):
            Filter(file, readonly=True, **options)
    Filter(file, readonly=True, rate=1e-5, seed=7, create=False).close()


def test_a_damaged_part_is_told_when_an_item_leads_there(file):
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    seen = Filter(file, readonly=True)
    with pytest.raises(ValueError, match="seen.koel: it is damaged at byte"):
        seen.contains_many(ITEMS)
    found = 0
    for item in ITEMS[:200]:
        try:
            found += item in seen
        except ValueError as error:
            assert "seen.koel: it is damaged at byte" in str(error)
    assert 0 < found < 200


def count(seen, items):
    return sum(seen.contains_many(items)), os.getpid()


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_processes_share_a_file(file, method):
    seen = Filter(file, readonly=True)
    assert len(pickle.dumps(seen)) < 1_000 and all(pickle.loads(pickle.dumps(seen)).contains_many(ITEMS))
    # While another filter has it for itself.
    with Filter(file) as writer, multiprocessing.get_context(method).Pool(3) as pool:
        writer.add("new")
        answers = pool.starmap(count, [(seen, ITEMS[part::6] + OTHERS) for part in range(6)], chunksize=1)
    assert [found for found, _ in answers] == [15_000] * 6
    assert os.getpid() not in {process for _, process in answers}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_goes_on_with_the_filter_of_its_parent(file):
    seen, stop = Filter(file, readonly=True), threading.Event()

    def use():
        while not stop.is_set():
            assert all(seen.contains_many(ITEMS[:500])) and ITEMS[-1] in seen

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(20):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert all(seen.contains_many(ITEMS[:2_000])) and OTHERS[number] not in seen
                seen.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
    stop.set()
    for thread in threads:
        thread.join()
    assert len(seen) == 90_000


def test_threads_may_read_and_close_it_at_once(file):
    for _ in range(20):
        seen = Filter(file, readonly=True)

        def use(number, seen=seen):
            try:
                for item in ITEMS[number::50]:
                    assert item in seen
                assert all(seen.contains_many(ITEMS))
            except ValueError as error:
                assert "closed" in str(error)
            seen.close()

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(use, range(4))) == [None] * 4
        assert seen.closed


def test_a_process_that_reads_takes_no_memory_of_its_own(file):
    """Neither for the file nor for what it has of it."""
    with Filter(file, seed=7) as seen:
        seen.add_many(map(str, range(1_500_000)))
    size = file.stat().st_size
    program = f"""if True:
        from pykoel import Filter
        def own():
            with open("/proc/self/status") as lines:
                return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
        before = own()
        seen = Filter({str(file)!r}, readonly=True)
        assert sum(seen.contains_many(map(str, range(100_000)))) == 100_000
        print(1024 * (own() - before))
    """
    own = int(subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.PIPE, timeout=120).stdout)
    assert size > 8_000_000 and own < 4_000_000, (size, own)

"""Filters that are read in their files: by many processes and threads, and never changed."""

import copy
import io
import multiprocessing
import os
import pickle
import re
import sys
import time
import warnings
from array import array

import pytest
from conftest import READS, USES, files, in_threads, leave_journal, run
from pykoel import Filter

ITEMS = [f"https://example.org/{number}" for number in range(90_000)]
OTHERS = [f"https://example.net/{number}" for number in range(1_000)]


@pytest.fixture
def file(file):
    with Filter(file, rate=1e-6, seed=1) as seen:
        seen.add_many(ITEMS)
    return file


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


def test_what_changes_a_filter_or_would_load_it_is_refused(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    before = file.read_bytes()
    with Filter(file, readonly=True) as seen:
        for name, use in USES.items():
            if name in READS:
                use(seen)
            else:
                with pytest.raises(io.UnsupportedOperation, match="readonly=True"):
                    use(seen)
        assert len(seen) == 90_000 and all(seen.contains_many(ITEMS))
    assert file.read_bytes() == before and files(file.parent) == ["seen.koel"]


def test_a_copy_may_be_changed_saved_and_merged(file):
    with Filter(file, readonly=True) as seen:
        for changed in [seen.copy(), copy.copy(seen), copy.deepcopy(seen)]:
            assert not changed.readonly and changed.path is None
            assert changed.add("new") and len(changed) == 90_001
        other = Filter(seed=1, rate=1e-6)
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
    leave_journal(file)
    (journal,) = file.parent.glob("seen.koel.journal.*")
    with pytest.warns(RuntimeWarning) as caught:
        assert "new" not in Filter(file, readonly=True)
    (warning,) = caught
    assert warning.filename == __file__
    what = r"seen.koel: readonly=True does not read its journal, which has (\d+) bytes of changes"
    (told,) = re.findall(what, str(warning.message))
    assert 0 < int(told) <= journal.stat().st_size
    with warnings.catch_warnings(action="error"):
        # A warning that is an error opens nothing.
        with pytest.raises(RuntimeWarning, match="does not read its journal"):
            Filter(file, readonly=True)
        Filter(file).close()
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


@pytest.mark.parametrize("options", [{"refresh": True}, {"max_bytes": 1 << 30}, {"sync": 0}, {"sync": None}, {"wait": 1}])
def test_options_of_a_filter_that_is_changed_are_refused(file, options):
    with pytest.raises(ValueError, match="leave them out with readonly=True"):
        Filter(file, readonly=True, **options)


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

        in_threads(4, use)
        assert seen.closed


def test_a_process_that_reads_takes_no_memory_of_its_own(file):
    """Neither for the file nor for what it has of it."""
    with Filter(file, seed=1) as seen:
        seen.add_many(map(str, range(1_500_000)))
    program = """
        import sys
        from pykoel import Filter
        def own():
            with open("/proc/self/status") as lines:
                return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
        before = own()
        seen = Filter(sys.argv[1], readonly=True)
        assert sum(seen.contains_many(map(str, range(100_000)))) == 100_000
        print(1024 * (own() - before))
    """
    assert file.stat().st_size > 8_000_000 and int(run(program, file).stdout) < 4_000_000

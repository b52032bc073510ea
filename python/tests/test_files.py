"""Filters in files: kept, loaded, claimed, shared with the command and with Rust, and damaged."""

import concurrent.futures
import errno
import os
import pathlib
import shutil
import subprocess
import sys
import time
from datetime import timedelta

import pytest
from pykoel import Filter

ROOT = pathlib.Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


def find_command():
    places = [os.environ.get("KOEL_COMMAND"), ROOT / "target/release/koel", ROOT / "target/debug/koel", shutil.which("koel")]
    return next((str(place) for place in places if place and os.access(place, os.X_OK)), None)


COMMAND = find_command()
needs_command = pytest.mark.skipif(
    not COMMAND and not os.environ.get("CI"), reason="there is no koel: cargo build -p koel-cli"
)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "seen.koel"


def test_a_filter_is_there_again(file):
    with Filter(file, rate=1e-6) as seen:
        assert file.exists() and seen.path == file
        assert all(seen.add_many(str(number) for number in range(10_000)))
    with Filter(str(file), rate=1e-6) as seen:
        assert len(seen) == 10_000
        assert all(seen.contains_many(str(number) for number in range(10_000)))


def test_a_process_may_go_to_another_folder(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    seen = Filter("seen.koel")
    seen.add("a")
    (file.parent / "below").mkdir()
    monkeypatch.chdir("below")
    seen.save()
    seen.save("seen.koel")
    seen.close()
    assert "a" in Filter(file) and "a" in Filter(file.parent / "below" / "seen.koel")


def test_it_is_saved_also_if_the_block_fails(file):
    with pytest.raises(RuntimeError), Filter(file) as seen:
        seen.add("a")
        raise RuntimeError
    assert "a" in Filter(file)


def test_a_copy_is_saved_beside(file):
    seen = Filter(file)
    seen.add("a")
    seen.save(file.with_name("copy"))
    seen.save(file)
    assert "a" in Filter(file.with_name("copy"))
    in_memory = Filter()
    with pytest.raises(TypeError, match="no file"):
        in_memory.save()
    in_memory.save(file.with_name("other"))
    assert len(Filter(file.with_name("other"))) == 0


def test_a_file_is_one_filters_at_a_time(file):
    seen = Filter(file)
    with pytest.raises(BlockingIOError, match="this process is using it already") as caught:
        Filter(file)
    assert caught.value.errno == errno.EAGAIN and caught.value.filename == str(file)
    with pytest.raises(BlockingIOError):
        Filter().save(file)
    seen.close()
    Filter(file).close()


def test_threads_may_close_it_at_once(file):
    for _ in range(50):
        seen = Filter(file)
        seen.add("a")
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert list(pool.map(lambda _: seen.close(), range(4))) == [None] * 4
        assert seen.closed


def test_one_may_wait_for_a_file(start, file):
    program = f"from pykoel import Filter; import time; seen = Filter({str(file)!r}); seen.add('theirs'); print(flush=True); time.sleep(1); seen.close()"
    other = start([sys.executable, "-c", program], stdout=subprocess.PIPE)
    other.stdout.readline()
    with pytest.raises(BlockingIOError, match=f"process {other.pid} "):
        Filter(file)
    seen = Filter(file, wait=float("inf"))
    assert "theirs" in seen
    assert other.wait() == 0


def test_a_killed_process_leaves_its_file_to_others(file):
    program = f"from pykoel import Filter; import os; seen = Filter({str(file)!r}); seen.add('a'); seen.save(); os.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", program], timeout=120).returncode == -9
    assert "a" in Filter(file)


def test_errors_are_pythons_own(file, tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        Filter(tmp_path / "no" / "such")
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(FileNotFoundError):
        Filter(file, create=False)
    assert list(tmp_path.iterdir()) == []
    for use in [Filter, Filter().save]:
        with pytest.raises(IsADirectoryError) as caught:
            use(tmp_path)
        assert caught.value.errno == errno.EISDIR and caught.value.filename == str(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="regular file"):
        Filter(tmp_path / "pipe")
    file.write_bytes(b"GIF89a and so on" * 100)
    with pytest.raises(ValueError, match="seen.koel"):
        Filter(file)
    assert file.read_bytes().startswith(b"GIF89a")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_folder_that_may_not_be_written_is_reported_at_once(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        Filter(tmp_path / "seen.koel")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: data + b"x",
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: b"",
    ],
)
def test_a_damaged_file_is_refused_and_stays(file, damage):
    with Filter(file) as seen:
        seen.add_many(str(number) for number in range(20_000))
    bad = damage(file.read_bytes())
    file.write_bytes(bad)
    with pytest.raises(ValueError, match=str(file)):
        Filter(file)
    with pytest.raises(ValueError):
        Filter.from_bytes(bad)
    assert file.read_bytes() == bad


def test_options_of_a_file_that_is_there_are_checked(file):
    Filter(file, rate=1e-4, remembers=3_600, seed=5).close()
    Filter(file).close()
    Filter(file, rate=1e-3, remembers=timedelta(hours=1), refresh=True, seed=5).close()
    for options, what in [
        ({"rate": 1e-9}, "rate"),
        ({"remembers": 60}, "remembers"),
        ({"seed": 6}, "seed"),
    ]:
        with pytest.raises(ValueError, match=what):
            Filter(file, **options)
    with pytest.raises(ValueError, match="for ever"):
        Filter(file.with_name("other")).close()
        Filter(file.with_name("other"), remembers=60)


def test_items_are_forgotten_in_time(file):
    with Filter(file, remembers=1) as seen:
        assert seen.add("a") and not seen.add("a") and seen.remembers == 1
    # As long as two ticks of a second.
    time.sleep(2.1)
    with Filter(file) as seen:
        assert "a" not in seen and len(seen) == 0
        assert seen.add_many(["a"]) == [True]


def test_an_item_that_is_refreshed_stays():
    seen, first = Filter(remembers=2, refresh=True), Filter(remembers=2)
    for _ in range(8):
        seen.add("a")
        first.add("a")
        time.sleep(0.5)
    assert not seen.add("a")
    began = time.monotonic()
    while "a" in first and time.monotonic() - began < 60:
        time.sleep(0.1)
    assert "a" not in first


@needs_command
def test_the_command_and_python_read_each_others_files(file):
    lines = "".join(f"https://example.org/{number}\n" for number in range(5_000))
    subprocess.run([COMMAND, "add", "-q", file], input=lines.encode(), check=True)
    with Filter(file) as seen:
        assert len(seen) == 5_000 and all(seen.contains_many(lines.split()))
        assert seen.add("https://example.org/größe")
    asked = lines + "https://example.org/größe\nhttps://example.org/not\n"
    found = subprocess.run([COMMAND, "query", "-q", file], input=asked.encode(), stdout=subprocess.PIPE)
    assert found.stdout.decode() == asked.removesuffix("https://example.org/not\n")
    # And they keep off each other's files.
    with Filter(file):
        refused = subprocess.run([COMMAND, "add", file], input=b"a\n", stderr=subprocess.PIPE)
        assert refused.returncode == 2 and f"process {os.getpid()}".encode() in refused.stderr


@needs_command
def test_the_command_and_python_agree_on_time(file):
    subprocess.run([COMMAND, "add", "-q", "--forget-after", "2h", file], input=b"a\n", check=True)
    with Filter(file, remembers=7_200) as seen:
        assert "a" in seen and seen.add("b")
    told = subprocess.run([COMMAND, "info", file], check=True, stdout=subprocess.PIPE).stdout
    assert b"2h" in told or b"2 h" in told, told


@needs_command
def test_a_state_that_compares_otherwise_is_refused(file):
    subprocess.run([COMMAND, "add", "-q", "--url", file], input=b"https://a.example/\n", check=True)
    with pytest.raises(ValueError, match="another way|hash"):
        Filter(file)


def test_filters_of_rust_programs_are_read(file):
    shutil.copy(GOLDEN / "growing-wide-5.koel", file)
    with Filter(file) as seen:
        assert all(seen.contains_many(f"str {number}" for number in range(12_000)))
        assert all(seen.contains_many(f"bytes {number}".encode() for number in range(12_000)))
        assert seen.add("new")
    assert "new" in Filter(file)
    shutil.copy(GOLDEN / "fixed-wide-5.koel", file.with_name("fixed"))
    fixed = Filter(file.with_name("fixed"))
    assert all(fixed.contains_many(f"String {number}" for number in range(200)))
    assert fixed.compact() == 0
    with pytest.raises(OverflowError, match="no room"):
        for number in range(10_000):
            fixed.add(str(number))


def test_a_filter_whose_ticks_another_program_counts_is_refused(file):
    shutil.copy(GOLDEN / "growing-forgets-5.koel", file)
    with pytest.raises(ValueError, match="another program counts"):
        Filter(file)

"""Filters in files: kept, loaded, claimed, shared with the command and with Rust, and damaged."""

import errno
import os
import pathlib
import shutil
import subprocess
import time
from datetime import timedelta

import pytest
from conftest import command, files, in_threads
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


def test_a_process_may_go_to_another_folder(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    seen = Filter("seen.koel")
    seen.add("a")
    assert seen.path == file
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


def test_a_path_may_be_bytes(tmp_path):
    path = os.fsencode(tmp_path / "gr\xf6\xdfe-") + b"\xff.koel"
    with Filter(path, wait=timedelta(seconds=1)) as seen:
        seen.add("a")
        seen.save(path + b".copy")
        assert os.fsencode(seen.path) == path
    assert "a" in Filter(path) and "a" in Filter(os.fsdecode(path + b".copy"))


def test_a_file_is_one_filters_at_a_time(start, file):
    seen = Filter(file)
    with pytest.raises(BlockingIOError, match="this process is using it already") as caught:
        Filter(file)
    assert caught.value.errno == errno.EAGAIN and caught.value.filename == str(file)
    with pytest.raises(BlockingIOError):
        Filter().save(file)
    seen.close()
    # Another process has it, and one may wait for it.
    program = "import sys, time; from pykoel import Filter; seen = Filter(sys.argv[1]); seen.add('theirs'); print(); time.sleep(1)"
    other = start(command(program, file), stdout=subprocess.PIPE)
    other.stdout.readline()
    with pytest.raises(BlockingIOError, match=f"process {other.pid} "):
        Filter(file)
    assert "theirs" in Filter(file, wait=float("inf"))
    assert other.wait() == 0


def test_threads_may_close_it_at_once(file):
    for _ in range(50):
        seen = Filter(file)
        seen.add("a")
        in_threads(4, lambda _: seen.close())
        assert seen.closed


@pytest.mark.parametrize("readonly", [False, True])
def test_errors_are_pythons_own(file, readonly):
    folder = file.parent
    for missing, options in [(folder / "no" / "such", {}), (file, {"create": False}), ("", {})]:
        with pytest.raises(FileNotFoundError) as caught:
            Filter(missing, readonly=readonly, **options)
        assert caught.value.errno == errno.ENOENT and caught.value.filename == str(missing)
    assert files(folder) == []
    os.mkfifo(folder / "pipe")
    for there, error, number in [(folder, IsADirectoryError, errno.EISDIR), (folder / "pipe", OSError, errno.EINVAL)]:
        with pytest.raises(error) as caught:
            Filter(there, readonly=readonly)
        assert caught.value.errno == number and caught.value.filename == str(there)
    with pytest.raises(IsADirectoryError):
        Filter().save(folder)
    file.touch()
    with pytest.raises(ValueError, match=f"{file}: it is empty"):
        Filter(file, readonly=readonly)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may do everything")
def test_a_folder_that_may_not_be_written_is_reported_at_once(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError):
        Filter(tmp_path / "seen.koel")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data + b"x",
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: b"",
        lambda data: b"GIF89a and so on" * 100,
    ],
)
def test_a_damaged_file_is_refused_and_stays(file, damage):
    with Filter(file) as seen:
        seen.add_many(str(number) for number in range(20_000))
    bad = damage(file.read_bytes())
    file.write_bytes(bad)
    for readonly in [False, True]:
        with pytest.raises(ValueError, match=str(file)):
            Filter(file, readonly=readonly)
    with pytest.raises(ValueError):
        Filter.from_bytes(bad)
    assert file.read_bytes() == bad


@pytest.mark.parametrize("readonly", [False, True])
def test_options_of_a_file_that_is_there_are_checked(file, readonly):
    Filter(file, rate=1e-4, remembers=3_600, seed=5).close()
    Filter(file.with_name("for ever")).close()
    before = file.stat().st_mtime_ns
    for options in [{}, {"rate": 1e-3, "remembers": timedelta(hours=1), "seed": 5, "create": False}]:
        Filter(file, readonly=readonly, **options).close()
    for name, options, what in [
        ("seen.koel", {"rate": 1e-9}, "it is planned for a rate of .*, which cannot be lowered"),
        ("seen.koel", {"remembers": 60}, "it remembers items for .*, which cannot be changed"),
        ("seen.koel", {"seed": 6}, "it has another seed, which cannot be changed"),
        ("for ever", {"remembers": 60}, "it remembers items for ever, which cannot be changed"),
        ("for ever", {"refresh": True}, "readonly=True" if readonly else "refresh=True is for a filter that forgets"),
        ("new", {"refresh": True}, "readonly=True" if readonly else "refresh=True is for a filter that forgets"),
    ]:
        with pytest.raises(ValueError, match=what):
            Filter(file.with_name(name), readonly=readonly, **options)
    assert files(file.parent) == ["for ever", "seen.koel"] and file.stat().st_mtime_ns == before


def test_items_are_forgotten_in_time_and_stay_when_they_are_refreshed(file):
    refreshed = Filter(remembers=2, refresh=True)
    with Filter(file, remembers=2) as seen:
        assert seen.add("a") and not seen.add("a") and seen.remembers == 2
    for _ in range(8):
        refreshed.add("a")
        time.sleep(0.5)
    assert not refreshed.add("a")
    with Filter(file, refresh=True) as seen:
        assert "a" not in seen and len(seen) == 0
        assert seen.add_many(["a"]) == [True]


@needs_command
def test_the_command_and_python_read_each_others_files(file):
    lines = "".join(f"https://example.org/{number}\n" for number in range(5_000))
    subprocess.run([COMMAND, "add", "-q", "--forget-after", "2h", file], input=lines.encode(), check=True)
    with Filter(file, remembers=7_200) as seen:
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
def test_a_state_that_compares_otherwise_is_refused(file):
    subprocess.run([COMMAND, "add", "-q", "--url", file], input=b"https://a.example/\n", check=True)
    with pytest.raises(ValueError, match="another way|hash"):
        Filter(file)


def test_filters_of_rust_programs_are_read(file):
    for golden in ["growing-wide-5.koel", "fixed-wide-5.koel", "growing-forgets-5.koel"]:
        shutil.copy(GOLDEN / golden, file.parent)
    with Filter(file.with_name("growing-wide-5.koel")) as seen:
        assert all(seen.contains_many(f"str {number}" for number in range(12_000)))
        assert all(seen.contains_many(f"bytes {number}".encode() for number in range(12_000)))
        assert seen.add("new")
    fixed = Filter(file.with_name("fixed-wide-5.koel"))
    assert all(fixed.contains_many(f"String {number}" for number in range(200)))
    assert fixed.compact() == 0
    with pytest.raises(OverflowError, match="no room"):
        for number in range(10_000):
            fixed.add(str(number))
    with pytest.raises(ValueError, match="another program counts"):
        Filter(file.with_name("growing-forgets-5.koel"))

"""The types: stubs that say what is there, and programs that are checked against them."""

import subprocess
import sys

SAMPLE = '''
from array import array
from datetime import timedelta
from pathlib import Path
from typing import assert_type

from pykoel import Filter, Stats

with Filter("seen.koel", rate=1e-6, remembers=timedelta(days=7), refresh=True, sync=timedelta(seconds=5)) as seen:
    assert_type(seen, Filter)
    assert_type(seen.add("a"), bool)
    assert_type(b"a" in seen, bool)
    assert_type(len(seen), int)
    assert_type(seen.add_many(line.strip() for line in open("urls")), list[bool])
    assert_type(seen.contains_many(array("Q", [1, 2])), list[bool])
    assert_type(seen.compact(), int)
    assert_type(seen.stats(), Stats)
    assert_type(seen.stats().rate, float)
    assert_type(seen.path, Path | None)
    assert_type(Filter.from_bytes(seen.to_bytes()).copy(), Filter)
    seen.save(Path("copy"))
Filter("each", sync=0).close()
Filter("by the system", sync=None).close()
'''

WRONG = '''
from pykoel import Filter

Filter(rate="small")
Filter("seen", sync="often")
Filter().add(17)
Filter().no_such_method()
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
    assert "Found 4 errors" in told, told

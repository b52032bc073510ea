"""What a filter does with items: one by one, many at once, and what it refuses."""

import copy
import importlib.metadata
import os
import pathlib
import pickle
import re
import sys
from array import array
from datetime import timedelta

import numpy
import pykoel
import pytest
from conftest import USES, files, run
from pykoel import Filter, Stats


def urls(count, first=0):
    return [f"https://example.org/{number}" for number in range(first, first + count)]


def test_an_item_is_new_once_and_again_when_it_was_removed():
    seen = Filter()
    assert seen.add("https://a.example/")
    assert not seen.add("https://a.example/")
    assert "https://a.example/" in seen
    assert "https://b.example/" not in seen
    assert len(seen) == 1 and bool(seen)
    assert seen.discard("https://a.example/")
    assert not seen.discard("https://a.example/")
    assert seen.add("https://a.example/")
    seen.remove("https://a.example/")
    with pytest.raises(KeyError, match="https://a.example/"):
        seen.remove("https://a.example/")
    seen.add("https://a.example/")
    seen.clear()
    assert len(seen) == 0 and "https://a.example/" not in seen


def test_a_str_equals_its_utf8_bytes():
    seen = Filter()
    for text in ["", "plain", "grüße", "日本語", "🦜" * 1_000, "nul\0nul"]:
        assert seen.hash_of(text) == seen.hash_of(text.encode())
        assert seen.add(text)
        assert not seen.add(text.encode())
        assert text.encode() in seen


def test_many_are_answered_as_one_by_one():
    one, many = Filter(seed=7), Filter(seed=7)
    items = [str(number % 7_000) for number in range(20_000)]
    assert [one.add(item) for item in items] == many.add_many(items)
    asked = [str(number) for number in range(5_000, 15_000)]
    assert [item in one for item in asked] == many.contains_many(asked)
    gone = asked[:4_000]
    assert [one.discard(item) for item in gone] == many.discard_many(gone)
    assert len(one) == len(many)


@pytest.mark.parametrize("count", [0, 1, 4_095, 4_096, 4_097, 10_000])
def test_pieces_lose_nothing_at_their_ends(count):
    seen = Filter()
    new = seen.add_many(str(number) for number in range(count))
    assert new == [True] * count and len(seen) == count


def test_a_piece_ends_with_a_megabyte():
    seen = Filter()
    items = [bytes([number]) * 300_000 for number in range(30)]
    assert seen.add_many(items) == seen.contains_many(items) == [True] * 30
    large = "x" * (3 << 20)
    assert seen.add(large) and large in seen


def test_a_buffer_of_uint64_is_hashes():
    seen, items = Filter(), urls(10_000)
    hashes = array("Q", [seen.hash_of(item) for item in items])
    assert all(seen.add_many(hashes))
    assert all(seen.contains_many(items))
    assert all(seen.contains_many(memoryview(hashes)[5_000:]))
    # A view with gaps, and one backwards.
    assert seen.discard_many(memoryview(hashes)[::2]) == [True] * 5_000
    assert seen.contains_many(memoryview(hashes)[::-1]) == [True, False] * 5_000


def test_numpys_arrays_are_hashes_if_they_have_the_machines_order_of_bytes():
    hashes, seen = numpy.arange(10_000, dtype="u8"), Filter()
    assert sum(seen.add_many(hashes)) >= 9_999
    assert all(seen.contains_many(hashes[::3])) and all(seen.contains_many(array("Q", range(10_000))))
    other = ">u8" if sys.byteorder == "little" else "<u8"
    for wrong in [hashes.astype(other), hashes.astype("i8"), hashes.reshape(100, 100), numpy.array(["a"])]:
        with pytest.raises(TypeError):
            seen.add_many(wrong)
    assert seen.add_many(array("Q")) == seen.contains_many(memoryview(array("Q"))) == []


@pytest.mark.parametrize(
    "items",
    ["https://a.example/", b"abc", bytearray(b"abc"), memoryview(b"abc"), array("B", b"abc"), array("d", [1.0]), 17, None, [1]],
)
def test_what_is_not_many_items_is_refused(items):
    for refuses in [Filter().add_many, Filter().contains_many, Filter().update]:
        with pytest.raises(TypeError):
            refuses(items)


@pytest.mark.parametrize("item", [17, None, 1.5, ("a",), bytearray(b"a")])
def test_other_items_are_refused_by_name(item):
    seen = Filter()
    for refuses in [seen.add, seen.discard, seen.hash_of, seen.__contains__]:
        with pytest.raises(TypeError, match=f"str or bytes, not {type(item).__name__}"):
            refuses(item)


def test_text_that_is_not_unicode_is_refused():
    with pytest.raises(UnicodeEncodeError):
        Filter().add("\ud800")


def test_an_iterable_that_fails_leaves_the_filter_in_order():
    def failing():
        yield from urls(5_000)
        raise RuntimeError("no more")

    seen = Filter()
    with pytest.raises(RuntimeError, match="no more"):
        seen.add_many(failing())
    # Those of whole pieces came.
    assert all(seen.contains_many(urls(4_096))) and len(seen) == 4_096


def test_what_was_answered_is_in_the_file_also_if_it_is_closed_meanwhile(tmp_path):
    seen = Filter(tmp_path / "seen.koel")

    def closing():
        yield from urls(9_000)
        seen.close()
        yield from urls(9_000, first=9_000)

    with pytest.raises(ValueError, match="closed"):
        seen.add_many(closing())
    assert len(Filter(tmp_path / "seen.koel")) == 8_192


@pytest.mark.parametrize("path", [None, "seen.koel"])
def test_compact_gives_back_what_is_not_needed(path, tmp_path):
    seen = Filter(path and tmp_path / path, seed=7)
    assert seen.compact() == 0
    seen.add_many(urls(300_000))
    seen.save(tmp_path / "before")
    before = seen.stats().size_in_bytes
    gone = urls(280_000, first=20_000)
    assert all(seen.discard_many(gone))
    given_back = seen.compact()
    assert given_back > before / 2 and seen.stats().size_in_bytes == before - given_back
    seen.save(tmp_path / "seen.koel")
    assert (tmp_path / "seen.koel").stat().st_size < (tmp_path / "before").stat().st_size / 2
    assert all(seen.contains_many(urls(20_000))) and sum(seen.contains_many(gone)) <= 2
    assert seen.compact() == 0
    seen.add_many(gone)
    assert all(seen.contains_many(urls(300_000)))


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, Filter.copy, lambda seen: pickle.loads(pickle.dumps(seen)), lambda seen: Filter.from_bytes(seen.to_bytes())])
def test_copies_are_equal_and_apart(again):
    seen = Filter(rate=1e-4)
    seen.add_many(urls(30_000))
    other = again(seen)
    assert len(other) == len(seen) and all(other.contains_many(urls(30_000)))
    assert other.hash_of("a") == seen.hash_of("a") and other.path is None
    other.add("only here")
    assert "only here" not in seen


def test_what_is_pickled_refreshes_as_before():
    seen = Filter(remembers=3_600, refresh=True)
    with pytest.raises(ValueError):
        Filter.from_bytes(Filter().to_bytes(), refresh=True)
    assert pickle.loads(pickle.dumps(seen)).remembers == seen.remembers


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"seed": 4}, "different seeds"),
        ({"rate": 0.01}, "different rates"),
        ({"remembers": 60}, "different times"),
        ({"capacity": 100_000}, "one capacity"),
    ],
)
def test_only_filters_that_are_alike_are_merged(options, text):
    one, other, unlike = Filter(seed=3), Filter(seed=3), Filter(**{"seed": 3} | options)
    for seen in [one, other, unlike]:
        seen.add_many(urls(20_000, first=10_000 * (seen is other)))
    before = one.to_bytes(), unlike.to_bytes()
    for left, right in [(one, unlike), (unlike, one)]:
        for merge in [left.merge, left.__or__, left.__ior__, left.update]:
            with pytest.raises(ValueError, match=text):
                merge(right)
    assert (one.to_bytes(), unlike.to_bytes()) == before
    assert one.merge(other) == pytest.approx(10_000, abs=3)
    assert all(one.contains_many(urls(30_000)))


def test_operators_and_update_are_those_of_a_set():
    one, other = Filter(seed=3), Filter(seed=3)
    one.add_many(urls(1_000))
    other.add_many(urls(1_000, first=500))
    both = one | other
    assert len(both) == 1_500 and all(both.contains_many(urls(1_500)))
    assert (len(one), len(other), both.path) == (1_000, 1_000, None)
    same = one
    one |= other
    assert one is same and len(one) == 1_500
    assert one.update() is None
    one.update(urls(10, first=2_000), [b"bytes"], array("Q", [one.hash_of("hash")]), Filter(seed=3) | other)
    assert len(one) == 1_512 and "hash" in one
    for wrong in [lambda: one | {"a"}, lambda: {"a"} | one]:
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="unsupported operand"):
        one |= ["a"]


def test_getsizeof_is_the_memory_that_it_takes(tmp_path):
    for seen in [Filter(capacity=1_000_000), Filter(tmp_path / "seen.koel", capacity=1_000_000)]:
        table = seen.stats().size_in_bytes
        assert table > 3_000_000
        assert abs(sys.getsizeof(seen) - table) < 2_000
    seen.close()
    assert sys.getsizeof(seen) < 2_000


def test_a_process_grows_by_what_getsizeof_says():
    program = """
        import sys
        from pykoel import Filter
        def resident():
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024
        Filter().add_many(str(number) for number in range(10_000))
        before = resident()
        seen = Filter(capacity=8_000_000)
        seen.update(str(number) for number in range(4_000_000))
        print((resident() - before) / sys.getsizeof(seen))
    """
    told = run(program).stdout
    assert 0.8 < float(told) < 1.1, told


def test_it_has_a_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", pykoel.__version__)
    assert pykoel.__version__ == importlib.metadata.version("pykoel")


def test_bytes_of_any_buffer_are_read():
    seen = Filter()
    seen.add("a")
    data = seen.to_bytes()
    for buffer in [data, bytearray(data), memoryview(data), array("B", data)]:
        assert "a" in Filter.from_bytes(buffer)
    with pytest.raises(TypeError, match="bytes-like object is required, not 'str'"):
        Filter.from_bytes("a")


def test_a_limit_of_memory_is_kept():
    seen = Filter(max_bytes=1_000_000)
    with pytest.raises(MemoryError, match="max_bytes"):
        for item in urls(1_000_000):
            seen.add(item)
    assert seen.stats().size_in_bytes <= 1_000_000 == seen.stats().max_bytes
    assert "https://example.org/0" in seen


WHOLE = "it must be a whole number from 0 to 2**64 - 1, not "
RATE = "rate must be more than 0 and less than 1, not "
REMEMBERS = "remembers must be more than no time, and at most a hundred years, in seconds"
WAIT = "wait must be a number of seconds, from 0 on"
SYNC = "sync must be a number of seconds from 0 on, or None for when the system writes"
NO_FILE = "create, wait, sync and readonly are for a filter with a file: pass path, too"


# Arguments that make no sense, and what is said. If the text does not, a note below it names the first of them.
@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"path": 5}, TypeError, "expected str, bytes or os.PathLike object, not int"),
        ({"path": "a\0b"}, ValueError, "embedded null byte"),
        ({"rate": "low"}, TypeError, "must be real number, not str"),
        ({"rate": 0}, ValueError, RATE + "0 (1 % is 0.01)"),
        ({"rate": True}, ValueError, RATE + "True (1 % is 0.01)"),
        ({"rate": float("nan")}, ValueError, RATE + "nan (1 % is 0.01)"),
        ({"rate": 10**20}, ValueError, RATE + "100000000000000000000 (1 % is 0.01)"),
        ({"capacity": 1.5}, TypeError, "'float' object cannot be interpreted as an integer"),
        ({"capacity": "many"}, TypeError, "'str' object cannot be interpreted as an integer"),
        ({"capacity": -1}, ValueError, WHOLE + "-1"),
        ({"capacity": 2**64}, ValueError, WHOLE + "18446744073709551616"),
        ({"capacity": 2**60}, ValueError, f"a filter for capacity={2**60} is larger than any memory: pass a smaller capacity"),
        ({"max_bytes": 1e9}, TypeError, "'float' object cannot be interpreted as an integer"),
        ({"max_bytes": -1}, ValueError, WHOLE + "-1"),
        ({"seed": "s"}, TypeError, "'str' object cannot be interpreted as an integer"),
        ({"seed": -1}, ValueError, WHOLE + "-1"),
        ({"remembers": "a day"}, TypeError, "must be real number, not str"),
        *(({"remembers": wrong}, ValueError, REMEMBERS) for wrong in [0, -5, float("inf"), 10**400]),
        ({"refresh": True}, ValueError, "refresh=True is for a filter that forgets: pass remembers, too"),
        ({"refresh": 1}, ValueError, "refresh=True is for a filter that forgets: pass remembers, too"),
        ({"wait": None, "path": "x"}, TypeError, "must be real number, not NoneType"),
        *(({"wait": wrong, "path": "x"}, ValueError, WAIT) for wrong in [-1, float("nan"), 10**400]),
        *(({"sync": wrong, "path": "x"}, TypeError, f"must be real number, not {type(wrong).__name__}") for wrong in ["often", b"1", [1]]),
        *(({"sync": wrong, "path": "x"}, ValueError, SYNC) for wrong in [-1, float("nan"), timedelta(seconds=-1)]),
        *(({name: given}, ValueError, NO_FILE) for name, given in [("sync", None), ("wait", 1), ("readonly", True), ("create", False)]),
        ({"unknown": 1}, TypeError, "Filter.__new__() got an unexpected keyword argument 'unknown'"),
    ],
)
def test_an_argument_that_makes_no_sense_is_refused_by_name(options, error, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = next(iter(options))
    for where in [{}] if "path" in options or text == NO_FILE else [{}, {"path": "x"}]:
        with pytest.raises(error) as caught:
            Filter(**options | where)
        assert str(caught.value) == text
        assert name in text or f"'{name}'" in "".join(caught.value.__notes__)
    assert files(tmp_path) == []


def test_flags_are_true_or_false_as_in_python(tmp_path):
    Filter(refresh=None).close()
    with pytest.raises(FileNotFoundError):
        Filter(tmp_path / "seen.koel", create=0)


@pytest.mark.parametrize("options", [{"rate": 1e-30}, {"rate": 5e-324, "capacity": 10}, {"max_bytes": 10}, {"max_bytes": 10, "capacity": 10**6}])
def test_an_error_about_a_limit_tells_what_is_enough(options, tmp_path):
    with pytest.raises(ValueError) as in_file:
        Filter(tmp_path / "seen.koel", **options)
    with pytest.raises(ValueError) as in_memory:
        Filter(**options)
    text = str(in_memory.value)
    assert text == str(in_file.value)
    name, enough = re.match(r"(\w+)=\S+ is .* (?:pass|takes) ([\d.e-]+)", text).groups()
    Filter(**options | {name: float(enough) if name == "rate" else int(enough)})
    too_little = float(enough) / 1.2 if name == "rate" else int(enough) // 2
    with pytest.raises(ValueError):
        Filter(**options | {name: too_little})
    assert ("or a capacity" in text) == (name == "rate" and "capacity" not in options)


# In a text for somebody who calls `Filter`, all of these would be of another language.
OF_RUST = re.compile(r"::|`|build|layout|insert|hasher|StableHash|growing|growth|tick\(|loader|pushed|fingerprint")


def test_no_error_speaks_of_another_language(tmp_path):
    golden, full = pathlib.Path(__file__).parents[2] / "tests" / "golden", tmp_path / "fixed"
    full.write_bytes((golden / "fixed-wide-5.koel").read_bytes())
    fixed, seen, other = Filter(full), Filter(seed=1, max_bytes=150_000), Filter(seed=1)
    other.add_many(urls(100_000))
    part = tmp_path / "part"
    part.write_bytes(other.to_bytes()[:-1])

    def fill():
        for number in range(10_000):
            fixed.add(str(number))

    wrong = [
        *(lambda options=options: Filter(**options) for options in [
            {"rate": 0}, {"rate": 1e-30}, {"rate": 1e-30, "capacity": 1_000}, {"capacity": 2**60}, {"max_bytes": 10},
        ]),
        fill,
        *(lambda like=like: seen.merge(like) for like in [
            other, Filter(seed=2), Filter(seed=1, rate=0.01), Filter(seed=1, capacity=10**6), fixed,
            Filter(seed=1, remembers=60),
        ]),
        *(lambda name=name: Filter.from_bytes((golden / name).read_bytes()) for name in os.listdir(golden)),
        lambda: Filter(part),
        lambda: Filter(tmp_path),
    ]
    texts = []
    for call in wrong:
        try:
            call()
        except (ValueError, OverflowError, MemoryError, OSError) as error:
            texts.append(str(error))
    assert len(texts) > 14
    assert [text for text in texts if OF_RUST.search(text)] == []


def test_the_figures_are_a_dataclass():
    seen = Filter(rate=1e-3, remembers=86_400)
    seen.add("a")
    stats = seen.stats()
    assert isinstance(stats, Stats)
    assert stats.items == 1 and stats.remembers >= 86_400 and 0 < stats.load < 1
    assert "items=1" in repr(stats)
    assert stats == seen.stats()


def test_small_filters_take_one_shard():
    seen = Filter()
    empty = seen.stats().size_in_bytes
    assert 128 << 10 <= empty <= 130 << 10
    seen.add_many(urls(10_000))
    assert seen.stats().size_in_bytes == empty
    assert repr(seen) == f"<pykoel.Filter {len(seen)} items, {empty} bytes>"


@pytest.mark.parametrize("options", [{}, {"path": "seen.koel"}, {"path": "seen.koel", "readonly": True}], ids=str)
def test_a_closed_filter_is_refused(options, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Filter("seen.koel", seed=1).close()
    seen = Filter(seed=1, **options)
    assert not seen.closed
    seen.close()
    seen.close()
    assert seen.closed
    for use in USES.values():
        with pytest.raises(ValueError, match="closed"):
            use(seen)
    with pytest.raises(ValueError, match="closed"), seen:
        pass
    assert repr(seen) == ("<pykoel.Filter closed>" if not options else f'<pykoel.Filter "{tmp_path}/seen.koel", closed>')


def test_editors_find_documentation():
    assert "seen.add(url)" in Filter.__doc__
    for name in dir(Filter):
        if not name.startswith("_"):
            assert getattr(Filter, name).__doc__, name
    assert sys.modules["pykoel"].__doc__

"""What a filter does with items: one by one, many at once, and what it refuses."""

import copy
import importlib.metadata
import os
import pathlib
import pickle
import re
import subprocess
import sys
from array import array
from datetime import timedelta

import numpy
import pykoel
import pytest
from pykoel import Filter, Stats


def urls(count, first=0):
    return [f"https://example.org/{number}" for number in range(first, first + count)]


def test_an_item_is_new_once():
    seen = Filter()
    assert seen.add("https://a.example/")
    assert not seen.add("https://a.example/")
    assert "https://a.example/" in seen
    assert "https://b.example/" not in seen
    assert len(seen) == 1 and bool(seen)


def test_a_str_equals_its_utf8_bytes():
    seen = Filter()
    for text in ["", "plain", "grüße", "日本語", "🦜" * 1_000, "nul\0nul"]:
        assert seen.hash_of(text) == seen.hash_of(text.encode())
        assert seen.add(text)
        assert not seen.add(text.encode())
        assert text.encode() in seen


def test_an_item_that_is_removed_is_new_again():
    seen = Filter()
    seen.add("a")
    assert seen.discard("a")
    assert not seen.discard("a")
    assert seen.add("a")
    seen.remove("a")
    with pytest.raises(KeyError, match="a"):
        seen.remove("a")


def test_what_was_added_is_found_however_far_it_has_grown():
    seen, items = Filter(), urls(300_000)
    new = seen.add_many(items)
    assert len(new) == len(items)
    # A false positive takes a new item for a seen one: one in a million, so there are hardly two.
    assert sum(new) >= len(items) - 3
    assert all(seen.contains_many(items))
    assert all(item in seen for item in items[::100])
    assert sum(seen.contains_many(urls(100_000, first=10**9))) <= 3
    assert seen.stats().growth > 10


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
    assert seen.add_many(items) == [True] * 30
    assert seen.contains_many(items) == [True] * 30
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


def test_an_empty_buffer_is_no_items():
    assert Filter().add_many(array("Q")) == Filter().contains_many(memoryview(array("Q"))) == []


@pytest.mark.parametrize(
    "items", [array("d", [1.0]), array("B", b"abc"), memoryview(b"abc"), bytearray(b"abc")]
)
def test_other_buffers_are_refused(items):
    with pytest.raises(TypeError):
        Filter().add_many(items)


@pytest.mark.parametrize("items", ["https://a.example/", b"https://a.example/", 17, None])
def test_one_item_is_not_many(items):
    with pytest.raises(TypeError):
        Filter().add_many(items)


@pytest.mark.parametrize("item", [17, None, 1.5, ("a",), bytearray(b"a")])
def test_other_items_are_refused_by_name(item):
    seen = Filter()
    for refuses in [seen.add, seen.discard, seen.hash_of, seen.__contains__]:
        with pytest.raises(TypeError, match=f"str or bytes, not {type(item).__name__}"):
            refuses(item)
    with pytest.raises(TypeError):
        seen.contains_many([item])


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


def test_clear_forgets_everything():
    seen = Filter()
    seen.add_many(urls(50_000))
    seen.clear()
    assert len(seen) == 0 and not any(seen.contains_many(urls(50_000)))


def test_compact_gives_back_what_is_not_needed():
    seen = Filter(seed=7)
    assert seen.compact() == 0
    seen.add_many(urls(300_000))
    before, file = seen.stats().size_in_bytes, len(seen.to_bytes())
    gone = urls(280_000, first=20_000)
    assert all(seen.discard_many(gone))
    given_back = seen.compact()
    assert given_back > before / 2 and seen.stats().size_in_bytes == before - given_back
    assert len(seen.to_bytes()) < file / 2
    assert all(seen.contains_many(urls(20_000))) and sum(seen.contains_many(gone)) <= 2
    assert seen.compact() == 0
    seen.add_many(gone)
    assert all(seen.contains_many(urls(300_000)))
    seen.clear()
    assert seen.compact() > before / 2 and len(seen) == 0


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


def test_filters_of_one_seed_are_merged():
    one, other = Filter(seed=3), Filter(seed=3)
    one.add_many(urls(20_000))
    other.add_many(urls(20_000, first=10_000))
    assert one.merge(other) == pytest.approx(10_000, abs=3)
    assert all(one.contains_many(urls(30_000)))
    with pytest.raises(ValueError, match="different seeds"):
        one.merge(Filter(seed=4))
    with pytest.raises(ValueError, match="different rates"):
        one.merge(Filter(seed=3, rate=0.01))
    with pytest.raises(ValueError, match="different times"):
        one.merge(Filter(seed=3, remembers=60))


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
    for wrong in [lambda: one | {"a"}, lambda: {"a"} | one, lambda: one.update("a"), lambda: one.update(1), lambda: one.update([1])]:
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(TypeError, match="unsupported operand"):
        one |= ["a"]
    with pytest.raises(ValueError, match="different seeds"):
        one | Filter(seed=4)
    one.close()
    for use in [one.update, lambda: one | other, lambda: other | one]:
        with pytest.raises(ValueError, match="closed"):
            use()


def test_an_update_of_a_file_is_on_record(tmp_path):
    seen = Filter(tmp_path / "seen.koel", seed=1)
    seen |= Filter(seed=1) | seen
    seen.update(["a"], (str(number) for number in range(5_000)))
    for file in tmp_path.iterdir():
        (tmp_path / "copy").mkdir(exist_ok=True)
        if file.is_file():
            (tmp_path / "copy" / file.name).write_bytes(file.read_bytes())
    with Filter(tmp_path / "copy" / "seen.koel") as again:
        assert len(again) == 5_001
    seen.close()


def test_getsizeof_is_the_memory_that_it_takes(tmp_path):
    for seen in [Filter(capacity=1_000_000), Filter(tmp_path / "seen.koel", capacity=1_000_000)]:
        table = seen.stats().size_in_bytes
        assert table > 3_000_000
        assert abs(sys.getsizeof(seen) - table) < 2_000
    seen.close()
    assert sys.getsizeof(seen) < 2_000


def test_a_process_grows_by_what_getsizeof_says():
    program = """if True:
        import sys
        from pykoel import Filter
        def resident():
            with open("/proc/self/status") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024
        hashes = memoryview(bytes(8 * 4096)).cast("Q")
        Filter().add_many(str(number) for number in range(10_000))
        before = resident()
        seen = Filter(capacity=8_000_000)
        seen.update(str(number) for number in range(4_000_000))
        print((resident() - before) / sys.getsizeof(seen))
    """
    told = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True, timeout=120).stdout
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


def test_filters_for_different_capacities_are_not_merged():
    one, other = Filter(capacity=1_000, seed=3), Filter(capacity=100_000, seed=3)
    one.add_many(urls(10_000))
    other.add_many(urls(10_000))
    before = one.to_bytes(), other.to_bytes()
    for left, right in [(one, other), (other, one)]:
        with pytest.raises(ValueError, match="one capacity"):
            left.merge(right)
    assert (one.to_bytes(), other.to_bytes()) == before


def test_a_limit_of_memory_is_kept():
    seen = Filter(max_bytes=1_000_000)
    with pytest.raises(MemoryError, match="max_bytes"):
        for item in urls(1_000_000):
            seen.add(item)
    assert seen.stats().size_in_bytes <= 1_000_000 == seen.stats().max_bytes
    assert "https://example.org/0" in seen


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rate": 0}, ValueError),
        ({"rate": 1.5}, ValueError),
        ({"rate": float("nan")}, ValueError),
        ({"rate": 1e-30}, ValueError),
        ({"capacity": "many"}, TypeError),
        ({"remembers": 0}, ValueError),
        ({"remembers": -5}, ValueError),
        ({"remembers": float("inf")}, ValueError),
        ({"remembers": "a day"}, TypeError),
        ({"refresh": True}, ValueError),
        ({"max_bytes": 10}, ValueError),
        ({"wait": -1, "path": "x"}, ValueError),
        ({"wait": float("nan"), "path": "x"}, ValueError),
        ({"unknown": 1}, TypeError),
        ({"create": False}, ValueError),
        ({"wait": 1}, ValueError),
        ({"sync": 1}, ValueError),
    ],
)
def test_what_makes_no_sense_is_refused(options, error, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        Filter(**options)
    assert list(tmp_path.iterdir()) == []


def names(error, options):
    """Whether an error names the first of these arguments, in the note that Python prints below it."""
    return f"'{next(iter(options))}'" in "".join(getattr(error, "__notes__", []))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"capacity": -1}, "it must be a whole number from 0 to 2**64 - 1, not -1"),
        ({"capacity": 2**64}, "it must be a whole number from 0 to 2**64 - 1, not 18446744073709551616"),
        ({"max_bytes": -1}, "it must be a whole number from 0 to 2**64 - 1, not -1"),
        ({"seed": -1}, "it must be a whole number from 0 to 2**64 - 1, not -1"),
        ({"seed": 2**64}, "it must be a whole number from 0 to 2**64 - 1, not 18446744073709551616"),
        ({"rate": 1.5}, "rate must be more than 0 and less than 1, not 1.5 (1 % is 0.01)"),
        ({"rate": True}, "rate must be more than 0 and less than 1, not True (1 % is 0.01)"),
        ({"rate": float("nan")}, "rate must be more than 0 and less than 1, not nan (1 % is 0.01)"),
        ({"rate": 10**20}, "rate must be more than 0 and less than 1, not 100000000000000000000 (1 % is 0.01)"),
        ({"path": "a\0b"}, "embedded null byte"),
        ({"remembers": 10**400}, "remembers must be more than no time, and at most a hundred years, in seconds"),
        ({"wait": 10**400, "path": "x"}, "wait must be a number of seconds, from 0 on"),
        ({"capacity": 2**60}, "a filter for capacity=1152921504606846976 is larger than any memory: pass a smaller capacity"),
    ],
)
def test_a_number_out_of_range_is_a_value_error_that_names_it(options, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for where in [{}] if "path" in options else [{}, {"path": "x"}]:
        with pytest.raises(ValueError) as caught:
            Filter(**options, **where)
        assert str(caught.value) == text
        assert names(caught.value, options) or "larger than any memory" in text
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"path": 5}, "expected str, bytes or os.PathLike object, not int"),
        ({"rate": "low"}, "must be real number, not str"),
        ({"capacity": 1.5}, "'float' object cannot be interpreted as an integer"),
        ({"capacity": "many"}, "'str' object cannot be interpreted as an integer"),
        ({"max_bytes": 1e9}, "'float' object cannot be interpreted as an integer"),
        ({"seed": "s"}, "'str' object cannot be interpreted as an integer"),
        ({"remembers": "a day"}, "must be real number, not str"),
        ({"wait": None, "path": "x"}, "must be real number, not NoneType"),
        ({"sync": "often", "path": "x"}, "must be real number, not str"),
    ],
)
def test_an_argument_of_a_wrong_type_is_a_type_error_that_names_it(options, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError) as caught:
        Filter(**options)
    assert str(caught.value) == text and names(caught.value, options)
    assert list(tmp_path.iterdir()) == []


def test_flags_are_true_or_false_as_in_python(tmp_path):
    with pytest.raises(ValueError, match="refresh=True"):
        Filter(refresh=1)
    Filter(refresh=None).close()
    with pytest.raises(FileNotFoundError):
        Filter(tmp_path / "seen.koel", create=0)


def test_a_path_may_be_bytes(tmp_path):
    path = os.fsencode(tmp_path / "gr\xf6\xdfe-") + b"\xff.koel"
    with Filter(path, wait=timedelta(seconds=1)) as seen:
        seen.add("a")
        seen.save(path + b".copy")
        assert os.fsencode(seen.path) == path
    assert "a" in Filter(path) and "a" in Filter(os.fsdecode(path + b".copy"))


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


def test_repr_tells_what_it_is():
    seen = Filter()
    seen.add("a")
    assert repr(seen).startswith("<pykoel.Filter 1 items, ")
    seen.close()
    assert repr(seen) == "<pykoel.Filter closed>"


def test_a_closed_filter_is_refused():
    seen = Filter()
    seen.close()
    seen.close()
    for use in [lambda: seen.add("a"), lambda: "a" in seen, lambda: len(seen), seen.compact, seen.stats, seen.save, seen.copy, lambda: seen.add_many([])]:
        with pytest.raises(ValueError, match="closed"):
            use()


def test_editors_find_documentation():
    assert "seen.add(url)" in Filter.__doc__
    for name in dir(Filter):
        if not name.startswith("_"):
            assert getattr(Filter, name).__doc__, name
    assert sys.modules["pykoel"].__doc__

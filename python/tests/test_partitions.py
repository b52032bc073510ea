"""Batches that are divided among partitions, and answers that are put back in order."""

import pickle
import random
from array import array

import pytest
from pykoel import Filter
from pykoel.partitions import InDoubt, Partitions, answer


def test_answers_are_in_the_order_of_the_items():
    dice = random.Random(1)
    for count in [1, 2, 3, 8, 65_535]:
        partitions = Partitions(count, seed=7)
        filters = {}
        seen = set()
        for size in [0, 1, 10, 5_000]:
            items = [str(dice.randrange(5_000)) for _ in range(size)]
            batch = partitions.split(items)
            answers = {}
            for number, hashes in batch.hashes.items():
                # Many filters would take too long: one for all partitions gives the same answers.
                filter = filters.setdefault(number % 8, Filter(seed=7, rate=1e-8))
                answers[number] = answer(filter.add_many, hashes)
            expected = []
            for item in items:
                expected.append(item not in seen)
                seen.add(item)
            assert batch.join(answers) == expected


def test_an_item_is_always_in_one_partition_whose_hashes_begin_alike():
    partitions = Partitions(4)
    items = [str(number) for number in range(1_000)]
    batch = partitions.split(items)
    filter = Filter(seed=partitions.seed)
    expected = {number: array("Q") for number in range(4)}
    for item in items:
        hash = filter.hash_of(item)
        expected[hash >> 62].append(hash)
    hashes = {number: array("Q", own) for number, own in batch.hashes.items()}
    assert hashes == expected and all(len(own) > 200 for own in hashes.values())
    # However it comes: as bytes, from an iterator, as a hash.
    for same in [map(str.encode, items), iter(items), array("Q", map(filter.hash_of, items))]:
        assert partitions.split(same) == batch


def test_the_hashes_of_a_partition_fill_its_filter_as_any_hashes_do():
    """If a filter took the bits that chose the partition to choose a shard, it would grow to twice the size here, with
    more false positives than it was made for."""
    dice = random.Random(1)
    drawn, absent = (array("Q", dice.randbytes(8 * 1_600_000)) for _ in range(2))
    own, others = (array("Q", Partitions(16).split(hashes).hashes[7]) for hashes in (drawn, absent))
    any, part = Filter(rate=1e-4), Filter(rate=1e-4)
    any.update(drawn[: len(own)])
    part.update(own)
    assert len(own) > 99_000 and part.stats().size_in_bytes < 1.5 * any.stats().size_in_bytes
    assert sum(part.contains_many(others)) < 1e-4 * len(others)


def test_items_of_a_partition_without_answers_are_in_doubt():
    items = [str(number) for number in range(100)]
    batch = Partitions(3).split(items)
    answers = {number: b"\1" * (len(own) // 8) for number, own in batch.hashes.items()}
    del answers[1]
    joined = batch.join(answers)
    doubt = InDoubt(joined)
    assert doubt.answers == joined and set(joined) == {True, None}
    assert len(doubt.indices) == len(batch.hashes[1]) // 8 and all(joined[index] is None for index in doubt.indices)
    assert str(doubt) == f"{len(doubt.indices)} of 100 items are in doubt: their partitions did not answer"
    assert batch.join({}) == [None] * 100
    assert pickle.loads(pickle.dumps(doubt)).answers == joined


def test_a_wrong_number_of_answers_is_refused():
    batch = Partitions(2).split(map(str, range(10)))
    right = {number: bytes(len(own) // 8) for number, own in batch.hashes.items()}
    assert batch.join(right) == [False] * 10
    for wrong in [right[0] + b"\0", right[0][1:], b""]:
        with pytest.raises(ValueError, match="one answer"):
            batch.join({**right, 0: wrong})
    with pytest.raises(ValueError, match="one answer"):
        batch.join({**right, 2: b"\0"})


@pytest.mark.parametrize(
    ("count", "items", "error"),
    [
        (0, [], ValueError),
        (-1, [], ValueError),
        (65_536, [], ValueError),
        (2, "a", TypeError),
        (2, [1], TypeError),
        (2, array("d", [1.0]), TypeError),
    ],
)
def test_what_cannot_be_divided_is_refused(count, items, error):
    with pytest.raises(error):
        Partitions(count).split(items)

"""Batches for a set whose partitions are filters in several processes. :mod:`pykoel.ray` is built on it.

    partitions = Partitions(4)
    batch = partitions.split(urls)
    answers = {number: ask(number, hashes) for number, hashes in batch.hashes.items()}
    new = batch.join(answers)

`ask` stands for a call to the process that has the partition, and returns what `answer` returns there:

    answer(filter.add_many, hashes)

All filters have the seed of the `Partitions`: ``Filter(path, seed=partitions.seed)``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ._pykoel import _join, _split

if TYPE_CHECKING:
    from ._pykoel import _Items

__all__ = ["Batch", "InDoubt", "Partitions", "answer"]


class InDoubt(RuntimeError):
    """Some partitions did not answer. Its cause is the error of the first.

    Each of their items may have been added or discarded, or not. All other items have their answers.
    """

    answers: list[bool | None]
    """The answer for each item, in order, or None if the item is in doubt."""

    def __init__(self, answers: list[bool | None]) -> None:
        super().__init__(answers)
        self.answers = answers

    @property
    def indices(self) -> list[int]:
        """The indices of the items in doubt."""
        return [index for index, answer in enumerate(self.answers) if answer is None]

    def __str__(self) -> str:
        said = f"{len(self.indices)} of {len(self.answers)} items are in doubt: their partitions did not answer"
        return said if self.__cause__ is None else f"{said}: {self.__cause__}"


@dataclass(frozen=True, slots=True)
class Batch:
    """The hashes of a batch of items, by partition."""

    hashes: dict[int, bytes]
    """The hashes of each partition that has some, in the order of the items, as native ``uint64``. `answer` takes them."""
    _partition_of: bytes

    def join(self, answers: Mapping[int, bytes]) -> list[bool | None]:
        """Puts the answers of the partitions in the order of the items.

        Leave out a partition that did not answer: each of its items gets None. Raises ValueError if a partition has more
        answers than items, or fewer.
        """
        return _join(self._partition_of, answers)


@dataclass(frozen=True, slots=True)
class Partitions:
    """Divides items among partitions by the top bits of their hashes. Each partition gets an equal share."""

    count: int
    """The number of partitions, from 1 to 65,535. It cannot be changed for filters that have items."""
    seed: int = 0
    """The seed of the hash, and of all filters."""

    def __post_init__(self) -> None:
        if not isinstance(self.count, int):
            raise TypeError(f"the number of partitions must be an int, not {type(self.count).__name__}")
        if not 1 <= self.count <= 65_535:
            raise ValueError(f"the number of partitions must be from 1 to 65,535, not {self.count}")
        if not 0 <= self.seed < 2**64:
            raise ValueError(f"seed must be from 0 to 2**64 - 1, not {self.seed}")

    def split(self, items: "_Items") -> Batch:
        """Hashes each item once. Takes what `Filter.add_many` takes: `str` and `bytes`, or a buffer of hashes.

        Hashes of your own must be spread evenly over 0 to 2**64 - 1.
        """
        hashes, partition_of = _split(items, self.seed, self.count)
        return Batch({number: own for number, own in enumerate(hashes) if own}, partition_of)


def answer(ask: "Callable[[_Items], list[bool]]", hashes: bytes) -> bytes:
    """Asks a filter for the hashes of its partition: `ask` is one of its methods for many items."""
    return bytes(ask(memoryview(hashes).cast("Q")))

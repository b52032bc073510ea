"""The native part of pykoel. Import from :mod:`pykoel`."""

from array import array
from collections.abc import Iterator, Mapping
from datetime import timedelta
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, final, type_check_only

from typing_extensions import Buffer

from ._stats import Stats

_Path: TypeAlias = str | bytes | PathLike[str] | PathLike[bytes]
_Item: TypeAlias = str | bytes

# A `str` is an iterable of `str`, and one item, so a checker has to tell it from a list of items: only other strings can
# be asked of a `str`, and anything of a list. What is known to be an `Iterable[str]`, and no more, may be a `str`: pass
# `iter(items)`. NumPy's arrays are collections, too.
@type_check_only
class _Collection(Protocol):
    def __iter__(self) -> Iterator[_Item]: ...
    def __contains__(self, item: object, /) -> bool: ...

# A buffer of uint64, such as `array.array("Q")`, is a buffer of hashes.
_Items: TypeAlias = Iterator[_Item] | _Collection | array[int] | memoryview[int]

__all__ = ["Filter", "__version__", "_join", "_reopened", "_restored", "_split"]

__version__: str

@final
class Filter:
    """An approximate set that grows, of `str` and `bytes`, shared by threads and kept in a file.

    With a path, what a call has answered survives the end of the process. `sync` is how often, in seconds, changes are
    made to survive a power failure, too: 0 is before a call returns, and None is when the system writes.

    With `readonly=True` the file is not loaded: all processes that ask it share one copy in memory, as it was saved. If
    a journal beside it has changes, it issues a RuntimeWarning. What would change it, or load it unasked, raises
    io.UnsupportedOperation; `copy` loads it.

    A child that is forked may use only those of its parent's filters: any other one raises a RuntimeError.
    """

    def __new__(
        cls,
        path: _Path | None = None,
        *,
        rate: float | None = None,
        capacity: int | None = None,
        remembers: float | timedelta | None = None,
        refresh: bool = False,
        max_bytes: int | None = None,
        seed: int | None = None,
        create: bool = True,
        wait: float | timedelta = 0.0,
        sync: float | timedelta | None = 1.0,
        readonly: bool = False,
    ) -> Self: ...
    def add(self, item: _Item) -> bool:
        """Adds an item, and returns True if it was new. One that is there is not added a second time."""

    def __contains__(self, item: _Item, /) -> bool: ...
    def discard(self, item: _Item) -> bool:
        """Removes an item if it is there, and returns whether it was. Remove only what was added."""

    def remove(self, item: _Item) -> None:
        """Removes an item like `discard`, and raises KeyError if it is not there."""

    def add_many(self, items: _Items) -> list[bool]:
        """Adds many items, and returns a list that has True for those that were new."""

    def contains_many(self, items: _Items) -> list[bool]:
        """Looks up many items, and returns a list of True and False."""

    def discard_many(self, items: _Items) -> list[bool]:
        """Removes many items, as `discard` removes one."""

    def hash_of(self, item: _Item) -> int:
        """The hash of an item in this filter, from 0 to 2**64 - 1."""

    def clear(self) -> None:
        """Removes all items."""

    def compact(self) -> int:
        """Gives back the memory that is not needed any more, and returns how many bytes. Other threads go on."""

    def merge(self, other: Filter) -> int:
        """Adds what another filter knows, and returns how many items came.

        Raises ValueError if they were not made alike, with one seed and for one capacity; nothing has changed then.
        A filter with a file is saved, and other threads wait. A kill meanwhile may leave none of what came.
        """

    def update(self, *others: Filter | _Items) -> None:
        """Adds many items, like `add_many`, and returns nothing. Other filters are merged."""

    def __or__(self, other: Filter, /) -> Self:
        """A filter in memory that has the items of both, which must have been made alike, with one seed."""

    def __ror__(self, other: Filter, /) -> Self: ...
    def __ior__(self, other: Filter, /) -> Self: ...
    def __sizeof__(self) -> int: ...
    def __len__(self) -> int: ...
    def save(self, path: _Path | None = None) -> None:
        """Saves a copy to another path, or makes a checkpoint: its file then has all changes. Other threads go on."""

    def close(self) -> None:
        """Ends all use of the filter. One with a file leaves it to others, with all changes and without a journal.

        It is closed by itself when nothing refers to it any more, and at a normal end of the program.
        """

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
        /,
    ) -> None: ...
    @property
    def closed(self) -> bool:
        """Whether the filter is closed."""

    @property
    def readonly(self) -> bool:
        """Whether it was opened with `readonly=True`."""

    @property
    def path(self) -> Path | None:
        """The path of its file, or None."""

    @property
    def remembers(self) -> int | None:
        """For how many seconds items are remembered at least (rounded up), or None if for ever."""

    def stats(self) -> Stats:
        """The figures of the filter."""

    def copy(self) -> Self:
        """A copy in memory, without a file."""

    def __copy__(self) -> Self: ...
    def __deepcopy__(self, memo: dict[int, Any], /) -> Self: ...
    def to_bytes(self) -> bytes:
        """The bytes that `save` would write."""

    @classmethod
    def from_bytes(cls, data: Buffer, *, refresh: bool = False) -> Self:
        """A filter in memory, of bytes that `to_bytes` returned, or of those of a file: any buffer of bytes."""

    def __reduce__(self) -> tuple[Any, tuple[bytes, bool] | tuple[Path]]: ...

def _restored(data: bytes, refresh: bool) -> Filter: ...
def _reopened(path: _Path) -> Filter: ...
def _split(items: _Items, seed: int, count: int) -> tuple[list[bytes], bytes]: ...
def _join(partition_of: bytes, answers: Mapping[int, bytes]) -> list[bool | None]: ...

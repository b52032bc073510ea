"""One set of seen items for a Ray cluster: an actor for each partition, which keeps its filter in a file.

    with SharedFilter("/shared/seen", 8, rate=1e-8) as seen:
        new = seen.add_many(urls)

Of all tasks that add an item, one gets True. Pass the object to tasks and actors as it is.

When an actor dies
------------------

What was answered is never lost. A filter with a file puts each change into its journal before it answers, so a killed
process loses none; ``sync=0`` also waits for the disk, for power failures. Ray starts the actor again, and it opens its
file.

A change that was under way raises `InDoubt`, which has the answers that are known and the items in doubt: they may have
been added or discarded, or not. It is not tried again, since a second try would take its own items for seen. Add the
items in doubt once more, until they are answered, and count them as new: then no item is lost, and of the share that the
actor had in the batch, all may be new twice. While Ray starts the actor again, which takes a second or two, they stay in
doubt: wait between two tries, and give up after some. Look up items whose removal is in doubt, and discard again those
that are there. Lookups are tried again until they are answered.

An error of an actor, such as that of a full disk, raises `InDoubt` as well, and is its cause. Any other exception, such
as a KeyboardInterrupt, leaves the whole batch in doubt, but for a TypeError or a ValueError about the items: nothing was
asked then.

When a task dies
----------------

Ray runs a task that died again, three times by default and without end in ``ray.data``. What the first run has added, the
second one takes for seen. Give tasks that add items ``max_retries=0``, or have them keep their answers elsewhere. A
dataset of ``ray.data`` runs anew each time that it is looked at: write it, or ``materialize()`` it, before anything else.
``examples/dedup_ray.py`` in the sources of pykoel does all of this.

Where the files are
-------------------

Partition 3 is ``3-of-8.koel`` in the folder, on the machine of its actor. (They are numbered from 0.) The folder has to
be the same on all machines where Ray may start the actor again: on a shared file system, or with ``options`` that keep
each actor on its machine. A set that has some of its files and lacks others is not opened. An actor that is started again
and does not find its file raises FileNotFoundError at each call. It never begins an empty one.
"""

import math
import os
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

import ray
from ray.exceptions import RayError

from . import Filter
from .partitions import InDoubt, Partitions, answer

if TYPE_CHECKING:
    from ._pykoel import _Item, _Items

__all__ = ["InDoubt", "SharedFilter"]

# In seconds. A killed process has its file until the system has taken its memory back.
_WAIT = 60.0


class _Partition:
    """An actor with the filter of one partition."""

    def __init__(self, number: int, count: int, folder: Path, settings: dict[str, Any]) -> None:
        self._path = folder / f"{number}-of-{count}.koel"
        self._settings = settings
        self._filter: Filter | None = None
        self._had_file = self._path.exists()

    @ray.method(max_task_retries=-1)
    def had_file(self) -> bool | None:
        """Whether there was a file before the set was opened, or None if it is open."""
        return self._had_file if self._filter is None else None

    @ray.method(max_task_retries=-1)
    def open(self, folder: Path, settings: dict[str, Any], create: bool) -> None:
        """Opens the file, or begins it. If there was an actor of this name, checks that it is the one asked for."""
        if (folder, settings) != (self._path.parent, self._settings):
            raise ValueError(f"the actors of this name keep {self._path.parent} with {self._settings}")
        _, count = self._path.name.split("-of-")
        for other in folder.glob("*-of-*.koel"):
            if other.name.split("-of-")[1] != count:
                raise ValueError(f"{other} is of a set with another number of partitions than {self._path.name}")
        if create:
            folder.mkdir(parents=True, exist_ok=True)
        if self._filter is None:
            # An actor that was started again had a file: without it, all its items would be new once more.
            self._filter = self._open(create and not ray.get_runtime_context().was_current_actor_reconstructed)

    def _open(self, create: bool) -> Filter:
        return Filter(self._path, create=create, wait=_WAIT, **self._settings)

    @property
    def _opened(self) -> Filter:
        if self._filter is None:
            # The actor was started again.
            self._filter = self._open(create=False)
        return self._filter

    def add_many(self, hashes: bytes) -> bytes:
        return answer(self._opened.add_many, hashes)

    def discard_many(self, hashes: bytes) -> bytes:
        return answer(self._opened.discard_many, hashes)

    @ray.method(max_task_retries=-1)
    def contains_many(self, hashes: bytes) -> bytes:
        return answer(self._opened.contains_many, hashes)

    @ray.method(max_task_retries=-1)
    def count(self) -> int:
        return len(self._opened)

    @ray.method(max_task_retries=-1)
    def save(self) -> None:
        self._opened.save()

    @ray.method(max_task_retries=-1)
    def close(self) -> None:
        self._opened.close()


class SharedFilter:
    """A set of `str` and `bytes`, shared by the tasks of a Ray cluster, in a folder with a file for each partition.

    `partitions` is the number of actors, and of files. It cannot be changed for a folder that has files.

    `rate`, `remembers`, `refresh` and `sync` are those of `Filter`. `capacity` and `max_bytes` are for all partitions
    together. `seed` is that of the hash: choose one that strangers do not know if they choose the items. `create=False`
    raises FileNotFoundError if a file is missing. So does `create=True`, if others are there.

    With a `name`, all programs and tasks that make a SharedFilter of this name use the same actors. Without it, another
    one on the same folder waits a minute for the files, and raises BlockingIOError. `options` are Ray's for an actor, such
    as ``{"lifetime": "detached"}`` or ``{"num_cpus": 1}``: a mapping for all actors, or a sequence with one for each. As
    long as the cluster has no room for all actors, the call waits.

    The actors end with the program that made them, unless they are detached. Their files then have all changes, with
    journals beside them. `close` leaves one file for each partition.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        partitions: int,
        *,
        rate: float | None = None,
        capacity: int | None = None,
        remembers: float | timedelta | None = None,
        refresh: bool = False,
        max_bytes: int | None = None,
        seed: int = 0,
        create: bool = True,
        sync: float | timedelta | None = 1.0,
        name: str | None = None,
        options: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        self._partitions = Partitions(partitions, seed)
        settings = {
            "rate": rate,
            # Shares differ by chance: four standard deviations more.
            "capacity": capacity and math.ceil((share := capacity / partitions) + 4 * math.sqrt(share)),
            "remembers": remembers,
            "refresh": refresh,
            "max_bytes": max_bytes and max_bytes // partitions,
            "seed": seed,
            "sync": sync,
        }
        each = [options] * partitions if options is None or isinstance(options, Mapping) else options
        if len(each) != partitions:
            raise ValueError(f"there are options for {len(each)} actors, and {partitions} partitions")
        path = Path(os.path.abspath(folder))
        self._actors: list[Any] = []
        self._is_closed = False
        try:
            for number, own in enumerate(each):
                named = {} if name is None else {"name": f"{name}-{number}-of-{partitions}", "get_if_exists": True}
                actor = _Actor.options(**named, **(own or {})).remote(number, partitions, path, settings)
                self._actors.append(actor)
            # All are asked before the first makes a file.
            had_file = self._ask_all("had_file")
            lacks = [number for number, had in enumerate(had_file) if had is False]
            if lacks and True in had_file:
                names = ", ".join(f"{number}-of-{partitions}.koel" for number in lacks)
                raise FileNotFoundError(
                    f"{path} lacks {names}, and has other files of the set: restore the missing ones, or begin the set in"
                    " an empty folder"
                )
            self._ask_all("open", path, settings, create)
        except BaseException:
            # Others may use those of a name.
            if name is None:
                self._end()
            raise

    def add_many(self, items: "_Items") -> list[bool]:
        """Adds many items, and returns a list that has True for those that were new."""
        return self._ask("add_many", items)

    def contains_many(self, items: "_Items") -> list[bool]:
        """Looks up many items, and returns a list of True and False."""
        return self._ask("contains_many", items)

    def discard_many(self, items: "_Items") -> list[bool]:
        """Removes many items, and returns a list that has True for those that were there. Remove only what was added."""
        return self._ask("discard_many", items)

    def add(self, item: "_Item") -> bool:
        """Adds an item, and returns True if it was new. A call for many items takes hardly longer."""
        return self.add_many([item])[0]

    def __contains__(self, item: "_Item", /) -> bool:
        return self.contains_many([item])[0]

    def discard(self, item: "_Item") -> bool:
        """Removes an item if it is there, and returns whether it was. Remove only what was added."""
        return self.discard_many([item])[0]

    def __len__(self) -> int:
        return sum(self._ask_all("count"))

    def save(self) -> None:
        """Makes a checkpoint of each partition: its file then has all changes. Other calls wait meanwhile."""
        self._ask_all("save")

    def close(self) -> None:
        """Ends the actors, for all who use them. Each leaves its file with all changes and without a journal."""
        if self._is_closed:
            return
        self._ask_all("close")
        self._end()

    def _end(self) -> None:
        self._is_closed = True
        for actor in self._actors:
            ray.kill(actor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _ask(self, method: str, items: "_Items") -> list[bool]:
        """Asks each partition once for its part of the items."""
        self._check_open()
        batch = self._partitions.split(items)
        calls = {number: getattr(self._actors[number], method).remote(own) for number, own in batch.hashes.items()}
        answers, failed = _answers(calls)
        joined = batch.join(answers)
        if failed is not None:
            raise InDoubt(joined) from failed
        return cast("list[bool]", joined)

    def _ask_all(self, method: str, *arguments: Any) -> list[Any]:
        """Asks all partitions, and raises the first error when all have answered."""
        self._check_open()
        calls = {number: getattr(actor, method).remote(*arguments) for number, actor in enumerate(self._actors)}
        answers, failed = _answers(calls)
        if failed is not None:
            raise failed
        return list(answers.values())

    def _check_open(self) -> None:
        if self._is_closed:
            raise ValueError("this set is closed")


def _answers(calls: Mapping[int, Any]) -> tuple[dict[int, Any], RayError | None]:
    """Waits for calls to partitions. Returns the answers of those that did not fail, and the first error."""
    answers: dict[int, Any] = {}
    failed: RayError | None = None
    for number, call in calls.items():
        try:
            answers[number] = ray.get(call)
        except RayError as error:
            failed = failed or error
    return answers, failed


# A change that was under way is not tried again.
_Actor: Any = ray.remote(max_restarts=-1, max_task_retries=0)(_Partition)

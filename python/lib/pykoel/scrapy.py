"""A Scrapy duplicates filter that takes a few bytes a request, in memory and in the job directory::

    DUPEFILTER_CLASS = "pykoel.scrapy.KoelDupeFilter"

It logs and counts as Scrapy's `RFPDupeFilter`, and has these settings:

* ``KOEL_RATE`` (1e-6): the fraction of new requests that are taken for seen, and never fetched.
* ``KOEL_CAPACITY`` (none): how many requests are expected. The filter grows without it, too.
* ``KOEL_REMEMBERS`` (none): for how many seconds a request is remembered at least. Without it, for ever.
* ``KOEL_SYNC`` (1): how often to write what was seen to the disk, in seconds, for power failures. With 0, before
  each request is scheduled; with None, when the system does.

With ``JOBDIR``, the filter is kept in ``requests.seen.koel`` there. If there is none yet, the fingerprints in the
``requests.seen`` of `RFPDupeFilter` are taken over. That file stays, and is not written any more.

What a resumed crawl can rely on
--------------------------------

All requests that were seen are still seen in the next run, however the crawl ended: at its end, by Ctrl-C or by a
kill at any moment. A power failure may take those of the last second, or what ``KOEL_SYNC`` says.

After a clean stop (the log says "Spider closed") there is one file. After a kill, its journal
``requests.seen.koel.journal.N`` is beside it, and belongs to it. ``requests.running`` marks a crawl that runs, or
was not stopped cleanly.

`RFPDupeFilter` of Scrapy 2.18 also keeps all of them in a kill. That of 2.19 loses those that are in the buffer of its
file, some 190. Neither of them waits for the disk.

The queue is not the filter's, and loses requests in a kill whatever the filter does. The next run then logs a WARNING.
`KoelScheduler` loses none::

    SCHEDULER = "pykoel.scrapy.KoelScheduler"

Items are as safe as the pipelines make them: see there.
"""

import logging
import pickle
import shutil
import sqlite3
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from scrapy.core.scheduler import Scheduler
from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.job import job_dir
from scrapy.utils.request import request_from_dict

from . import Filter

if TYPE_CHECKING:
    from twisted.internet.defer import Deferred
    from scrapy import Spider
    from scrapy.crawler import Crawler
    from scrapy.http.request import Request
    from scrapy.statscollectors import StatsCollector
    from scrapy.utils.request import RequestFingerprinterProtocol

logger = logging.getLogger(__name__)

_BATCH = 10_000

# In the `meta` of a request that waits: where it is in the database.
_ROW = "pykoel_row"


class KoelDupeFilter(RFPDupeFilter):
    """Scrapy's duplicates filter, with a koel filter in place of its set and its file.

    Its log lines, ``DUPEFILTER_DEBUG`` and ``dupefilter/filtered`` are those of the base class. At the end it adds
    ``dupefilter/koel/items`` and ``dupefilter/koel/bytes``, the memory that the filter takes.
    """

    def __init__(
        self,
        path: str | None = None,
        debug: bool = False,
        *,
        fingerprinter: "RequestFingerprinterProtocol | None" = None,
        rate: float | None = None,
        capacity: int | None = None,
        remembers: float | None = None,
        sync: float | None = 1.0,
        stats: "StatsCollector | None" = None,
    ) -> None:
        # Without a path: the set and the file of the base class stay empty.
        super().__init__(None, debug, fingerprinter=fingerprinter)
        self._stats = stats
        self._syncs_each = sync == 0
        # Set by a scheduler that has kept the requests that were not done.
        self._queue_is_kept = False
        file = None if path is None else Path(path, "requests.seen.koel")
        # Is there from `open` to a clean stop.
        self._running = None if file is None else file.with_name("requests.running")
        # The file is claimed here and not in `open`: a second crawl in this directory has to fail before the
        # scheduler opens the request queues of the first, which it does before it calls `open`.
        try:
            if file is not None and not file.exists() and (seen := file.with_suffix("")).exists():
                taken = Filter(rate=rate, capacity=capacity, remembers=remembers)
                _take_over(seen, taken)
                # The new file comes whole: after a kill before this line, the next run takes over again.
                taken.save(file)
                del taken
            if file is None:
                self._seen = Filter(rate=rate, capacity=capacity, remembers=remembers)
            else:
                # A crawl that was killed has its file until the system has taken its memory back.
                self._seen = Filter(file, rate=rate, capacity=capacity, remembers=remembers, wait=5.0, sync=sync)
        except BlockingIOError:
            logger.error("Another process crawls with %s. A job directory is for one crawl at a time.", path)
            raise

    @classmethod
    def from_crawler(cls, crawler: "Crawler") -> Self:
        settings = crawler.settings
        rate, capacity, remembers = (settings.get(f"KOEL_{name}") for name in ("RATE", "CAPACITY", "REMEMBERS"))
        sync = settings.get("KOEL_SYNC", 1.0)
        return cls(
            job_dir(settings),
            settings.getbool("DUPEFILTER_DEBUG"),
            fingerprinter=crawler.request_fingerprinter,
            rate=None if rate is None else float(rate),
            capacity=None if capacity is None else int(capacity),
            remembers=None if remembers is None else float(remembers),
            # The command line has strings.
            sync=None if sync in (None, "None") else float(sync),
            stats=crawler.stats,
        )

    def open(self) -> None:
        if self._running is not None:
            if self._running.exists() and not self._queue_is_kept:
                self._warn_of_queue(self._running.with_name("requests.queue"))
            self._running.touch()

    def _warn_of_queue(self, queue: Path) -> None:
        if not (queue / "active.json").exists():
            lost = "no request that waited in %s is taken up"
        else:
            lost = (
                "%s is taken up as its last clean stop left it, so requests that came later may be missing, and files "
                "that are gone may be read: if an OSError is logged again and again, remove the folder"
            )
        logger.warning(
            "This crawl was not stopped cleanly. It goes on with the %d requests that it has seen, and does not fetch "
            f"those among them again that waited or were in flight: {lost}. For every page, begin in a new job "
            "directory, with SCHEDULER = 'pykoel.scrapy.KoelScheduler', which loses none.",
            len(self._seen),
            queue,
        )

    def knows(self, request: "Request") -> bool:
        """Whether the request was seen, which marks nothing."""
        return self.fingerprinter.fingerprint(request) in self._seen

    def request_seen(self, request: "Request") -> bool:
        return not self._seen.add(self.fingerprinter.fingerprint(request))

    def close(self, reason: str) -> None:
        if self._stats is not None:
            figures = self._seen.stats()
            self._stats.set_value("dupefilter/koel/items", figures.items)
            self._stats.set_value("dupefilter/koel/bytes", figures.size_in_bytes)
        # The scheduler has saved its queue by now.
        if self._running is not None:
            self._running.unlink(missing_ok=True)
        try:
            self._seen.close()
        except Exception:
            logger.error("Could not save the seen requests to %s. Its journal has them.", self._seen.path)
            raise


def _take_over(path: Path, seen: Filter) -> None:
    """Adds the fingerprints that `RFPDupeFilter` left in `requests.seen`."""
    with path.open("rb") as file:
        fingerprints = _fingerprints(file)
        while batch := list(islice(fingerprints, _BATCH)):
            seen.add_many(batch)
    logger.info("Took over %d fingerprints from %s", len(seen), path)


def _fingerprints(file: BinaryIO) -> Iterator[bytes]:
    """The fingerprints in a `requests.seen`: lines of hexadecimal digits, as Scrapy wrote them up to 2.18, or each in
    binary after its length in two bytes, as 2.19 does, also at the end of a file of lines. An end that a kill cut off
    is left out."""
    while first := file.read(1):
        # A length that begins with a hexadecimal digit would be over 12,000 bytes, which no fingerprint has.
        if first in b"0123456789abcdefABCDEF":
            line = first + file.readline()
            if line.endswith(b"\n"):
                yield bytes.fromhex(line.decode("ascii"))
        elif first < b"0":
            length = int.from_bytes(first + file.read(1), "big")
            fingerprint = file.read(length)
            if fingerprint and len(fingerprint) == length:
                yield fingerprint
        else:
            raise ValueError(f"{file.name}: at byte {file.tell() - 1} there is no fingerprint of Scrapy")


class KoelScheduler(Scheduler):
    """Scrapy's scheduler, with a `KoelDupeFilter`, for a ``JOBDIR`` that a kill takes nothing from.

    Each request is in a database, ``requests.pending`` in the job directory, before it is marked as seen, until its
    response was handled: its callback has ended, the requests of that are there, too, and its items have passed the
    pipelines. After a kill, Scrapy's queue is made anew from these. So no request is lost, and those in progress are
    fetched once more. With ``KOEL_SYNC = 0`` each is on the disk before it is marked, too.

    Scrapy's feeds (``-o``) have a buffer. A kill takes the items in it, whose pages are not fetched again. A pipeline
    that flushes each item loses none, such as that of ``examples/pipelines.py``::

        def process_item(self, item):
            self.file.write(self.encoder.encode(item).encode() + b"\\n")
            self.file.flush()
            return item

    Requests that cannot be serialized are not covered: they wait in memory, as always. It costs some 60 microseconds a
    request. Any disk queue will do. Use it from the beginning of a crawl: what waits in a queue of Scrapy's own
    scheduler is in the database only once it leaves that queue.
    """

    def open(self, spider: "Spider") -> "Deferred[None] | None":
        self._taken: dict[Request, int] = {}
        self._pending: sqlite3.Connection | None = None
        if self.dqdir is None:
            return super().open(spider)
        if not isinstance(self.df, KoelDupeFilter):
            raise TypeError("KoelScheduler needs DUPEFILTER_CLASS = 'pykoel.scrapy.KoelDupeFilter'")
        self._filter = self.df
        queue = Path(self.dqdir)
        self._pending = sqlite3.connect(queue.with_name("requests.pending"), isolation_level=None)
        self._pending.execute("PRAGMA journal_mode = WAL")
        self._pending.execute(f"PRAGMA synchronous = {'FULL' if self._filter._syncs_each else 'NORMAL'}")
        self._pending.execute("CREATE TABLE IF NOT EXISTS request (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB)")
        # 1 from here to a clean stop.
        (runs,) = self._pending.execute("PRAGMA user_version").fetchone()
        self._filter._queue_is_kept = bool(runs)
        if runs:
            shutil.rmtree(queue)
            queue.mkdir()
        self._pending.execute("PRAGMA user_version = 1")
        opened = super().open(spider)
        if runs:
            self._take_up(spider)
        return opened

    def _take_up(self, spider: "Spider") -> None:
        """Puts the requests that were not done into the queue."""
        assert self._pending is not None
        count = 0
        for row, data in self._pending.execute("SELECT id, data FROM request ORDER BY id"):
            request = request_from_dict(pickle.loads(data), spider=spider)
            request.meta[_ROW] = row
            if not request.dont_filter:
                # The kill may have come before it was marked.
                self._filter.request_seen(request)
            if not self._dqpush(request):
                self._mqpush(request)
            count += 1
        logger.info("The crawl was not stopped cleanly: %d requests that were not done are taken up", count)

    def enqueue_request(self, request: "Request") -> bool:
        if self._pending is not None:
            if not request.dont_filter and self._filter.knows(request):
                self.df.log(request, self.spider)
                return False
            # One that is copied from another request has the row of that.
            request.meta.pop(_ROW, None)
            if (row := self._keep(request)) is not None:
                request.meta[_ROW] = row
        return super().enqueue_request(request)

    def _keep(self, request: "Request") -> int | None:
        """Puts a request into the database, if it can be serialized."""
        assert self._pending is not None
        try:
            data = pickle.dumps(request.to_dict(spider=self.spider), protocol=4)
        except (pickle.PicklingError, AttributeError, TypeError, ValueError):
            # Scrapy tells.
            return None
        return self._pending.execute("INSERT INTO request (data) VALUES (?)", (data,)).lastrowid

    def next_request(self) -> "Request | None":
        self._forget_done()
        request = super().next_request()
        if request is not None and self._pending is not None:
            row = request.meta.pop(_ROW, None)
            if row is None:
                row = self._keep(request)
            if row is not None:
                self._taken[request] = row
        return request

    def _forget_done(self) -> None:
        """Takes those requests out of the database that Scrapy's engine is done with."""
        if self._pending is None or not self._taken:
            return
        assert self.crawler is not None and self.crawler.engine is not None
        slot = self.crawler.engine._slot
        done = [request for request in self._taken if slot is not None and request not in slot.inprogress]
        if done:
            rows = [(self._taken.pop(request),) for request in done]
            self._pending.execute("BEGIN")
            self._pending.executemany("DELETE FROM request WHERE id = ?", rows)
            self._pending.execute("COMMIT")

    def close(self, reason: str) -> "Deferred[None] | None":
        closed = super().close(reason)
        if self._pending is not None:
            self._forget_done()
            self._pending.execute("PRAGMA user_version = 0")
            self._pending.close()
        return closed

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
A scheduler that keeps the queue itself can do better. ``examples/scheduler.py`` in the sources of pykoel is one.
"""

import logging
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

from scrapy.dupefilters import RFPDupeFilter
from scrapy.utils.job import job_dir

from . import Filter

if TYPE_CHECKING:
    from scrapy.crawler import Crawler
    from scrapy.http.request import Request
    from scrapy.statscollectors import StatsCollector
    from scrapy.utils.request import RequestFingerprinterProtocol

logger = logging.getLogger(__name__)

_BATCH = 10_000


class KoelDupeFilter(RFPDupeFilter):
    """Scrapy's duplicates filter, with a koel filter in place of its set and its file.

    Its log lines, ``DUPEFILTER_DEBUG`` and ``dupefilter/filtered`` are those of the base class. At the end it adds
    ``dupefilter/koel/items`` and ``dupefilter/koel/bytes``, the memory that the filter takes.

    A scheduler may set ``queue_is_kept`` before it calls ``open``: requests that were not done at a kill are in its
    queue, so there is nothing to warn of.
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
        self.queue_is_kept = False
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
            if self._running.exists() and not self.queue_is_kept:
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
            "directory, with a scheduler that keeps them, such as that of pykoel's examples.",
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

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
``requests.seen.koel.journal.N`` is beside it, and belongs to it.

`RFPDupeFilter` of Scrapy 2.16 also keeps all of them in a kill. That of 2.19 loses those that are in the buffer of its
file, some 190. None of them waits for the disk.

Still, neither filter makes a crawl safe against kills, because Scrapy marks a request as seen when it is scheduled, and
not when it is fetched:

* Requests that waited or were in flight at a kill are marked as seen. Then they are lost: no later run fetches
  them, unless with ``dont_filter``, which Scrapy itself sets for ``start_urls``.
* Scrapy writes the index of its disk queues at a clean stop only. After a kill, the next run may ignore the queued
  requests, or read an index that does not fit its files: Scrapy 2.19 then logs an ``OSError`` again and again, and
  never ends. Remove ``requests.queue`` from the job directory before you resume a crawl that was killed.
* Requests that cannot be serialized wait in memory, and are lost at a clean stop, too.

For every page after a kill, begin again in a new job directory.
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
        file = None if path is None else Path(path, "requests.seen.koel")
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
                self._seen = Filter(file, rate=rate, capacity=capacity, remembers=remembers, sync=sync)
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

    def request_seen(self, request: "Request") -> bool:
        return not self._seen.add(self.fingerprinter.fingerprint(request))

    def close(self, reason: str) -> None:
        if self._stats is not None:
            figures = self._seen.stats()
            self._stats.set_value("dupefilter/koel/items", figures.items)
            self._stats.set_value("dupefilter/koel/bytes", figures.size_in_bytes)
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
    """The fingerprints in a `requests.seen`: lines of hexadecimal digits, as older versions wrote, or each in
    binary after its length in two bytes, as Scrapy 2.19 does. An end that a kill cut off is left out."""
    # A length that begins with a hexadecimal digit is over 12,000 bytes, which no fingerprint has.
    is_text = file.read(1) in b"0123456789abcdefABCDEF"
    file.seek(0)
    if is_text:
        for line in file:
            if line.endswith(b"\n"):
                yield bytes.fromhex(line.decode("ascii"))
        return
    while len(size := file.read(2)) == 2:
        fingerprint = file.read(length := int.from_bytes(size, "big"))
        if len(fingerprint) == length:
            yield fingerprint

"""A Scrapy scheduler whose requests survive a kill. Copy it to your project's `scheduler.py`::

    DUPEFILTER_CLASS = "pykoel.scrapy.KoelDupeFilter"
    SCHEDULER = "myproject.scheduler.KoelScheduler"

It asks Scrapy's engine which requests are in progress, by a field of Scrapy's own (`engine._slot.inprogress`): Scrapy
tells nobody when the items of a response have passed the pipelines. So a later Scrapy may need another version of this.
It was tested with Scrapy 2.19.
"""

import logging
import pickle
import shutil
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

from pykoel.scrapy import KoelDupeFilter
from scrapy.core.scheduler import Scheduler
from scrapy.utils.request import request_from_dict

if TYPE_CHECKING:
    from scrapy import Spider
    from scrapy.http.request import Request
    from twisted.internet.defer import Deferred

logger = logging.getLogger(__name__)

# In the `meta` of a request that waits: where it is in the database.
_ROW = "koel_row"


class KoelScheduler(Scheduler):
    """Scrapy's scheduler, with a `KoelDupeFilter`, for a ``JOBDIR`` that a kill takes nothing from.

    Each request is in a database, ``requests.pending`` in the job directory, before it is marked as seen, until its
    response was handled: its callback has ended, the requests of that are there, too, and its items have passed the
    pipelines. After a kill, Scrapy's queue is made anew from these. So no request is lost, and those in progress are
    fetched once more. With ``KOEL_SYNC = 0`` each is on the disk before it is marked, too.

    Requests that cannot be serialized are not covered: they wait in memory, as always. Any disk queue will do. Use it
    from the beginning of a crawl: what waits in a queue of Scrapy's own scheduler is in the database only once it
    leaves that queue.
    """

    def open(self, spider: "Spider") -> "Deferred[None] | None":
        self._taken: dict[Request, int] = {}
        self._pending: sqlite3.Connection | None = None
        if self.dqdir is None:
            return super().open(spider)
        if not isinstance(self.df, KoelDupeFilter):
            raise TypeError("KoelScheduler needs DUPEFILTER_CLASS = 'pykoel.scrapy.KoelDupeFilter'")
        assert self.crawler is not None
        self._filter = self.df
        # The command line has strings.
        syncs_each = str(self.crawler.settings.get("KOEL_SYNC")) in ("0", "0.0")
        queue = Path(self.dqdir)
        self._pending = sqlite3.connect(queue.with_name("requests.pending"), isolation_level=None)
        self._pending.execute("PRAGMA journal_mode = WAL")
        self._pending.execute(f"PRAGMA synchronous = {'FULL' if syncs_each else 'NORMAL'}")
        self._pending.execute("CREATE TABLE IF NOT EXISTS request (id INTEGER PRIMARY KEY AUTOINCREMENT, data BLOB)")
        # 1 from here to a clean stop.
        (runs,) = self._pending.execute("PRAGMA user_version").fetchone()
        self._filter.queue_is_kept = bool(runs)
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

"""What the docstrings of `pykoel.scrapy` and of the examples for Scrapy promise."""

import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from conftest import LONG, Start, copied, files, run, until
from site_of_pages import Site

from pykoel import Filter

pytest.importorskip("scrapy")

from scrapy import Request, squeues
from scrapy.utils.request import RequestFingerprinter

from pykoel.scrapy import KoelDupeFilter

SPIDER = Path(__file__).parent / "spider.py"
EXAMPLES = Path(__file__).parent.parent / "examples"
KOEL = "pykoel.scrapy.KoelDupeFilter"
# Of the examples.
SCHEDULER = "scheduler.KoelScheduler"
SCRAPY = "scrapy.dupefilters.RFPDupeFilter"
FILE = "requests.seen.koel"


@dataclass
class Crawl:
    """A crawl in a process of its own."""

    process: subprocess.Popen[bytes]
    log_file: Path
    report: Path

    def finish(self) -> "Crawl":
        self.process.wait()
        assert self.process.returncode == 0, self.log()
        return self

    def log(self) -> str:
        return self.log_file.read_text()

    def stats(self) -> dict[str, Any]:
        stats = json.loads(self.report.read_text())
        assert isinstance(stats, dict)
        return stats


@pytest.fixture
def crawl(start: Start, tmp_path: Path) -> Callable[..., Crawl]:
    """Starts a crawl with settings, from a URL or from a file of seeds."""

    def crawl(url: str | None = None, seeds: Path | None = None, dupefilter: str = KOEL, **settings: object) -> Crawl:
        name = f"crawl{time.monotonic_ns()}"
        log_file, report = tmp_path / f"{name}.log", tmp_path / f"{name}.json"
        command = [sys.executable, "-m", "scrapy", "runspider", str(SPIDER), "-a", f"report={report}"]
        command += ["-a", f"url={url}"] if url is not None else []
        command += ["-a", f"seeds={seeds}"] if seeds is not None else []
        for key, value in {"DUPEFILTER_CLASS": dupefilter, "TELNETCONSOLE_ENABLED": False, **settings}.items():
            command += ["-s", f"{key}={value}"]
        with log_file.open("wb") as log:
            environment = {**os.environ, "PYTHONPATH": str(EXAMPLES)}
            return Crawl(start(command, stderr=log, cwd=tmp_path, env=environment), log_file, report)

    return crawl


Killed = Callable[..., Crawl]


@pytest.fixture
def killed(crawl: Callable[..., Crawl]) -> Killed:
    """Starts a crawl, and kills it after so many hits: while it is held and waits for pages, or at any moment."""
    dice = random.Random(1)

    def killed(site: Site, hits: int, held: bool = True, **options: object) -> Crawl:
        if held:
            site.hold_after(hits)
        run = crawl(**options)
        until(lambda: site.hits().total() >= hits or run.process.poll() is not None)
        time.sleep(dice.random() * 0.05)
        run.process.kill()
        assert run.process.wait() != 0, run.log()
        site.release()
        site.await_end_of_all()
        return run

    return killed


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job"
    path.mkdir()
    return path


def fingerprint(url: str) -> bytes:
    return RequestFingerprinter().fingerprint(Request(url))


# By setting alone.


@pytest.mark.parametrize("reactor", ["asyncioreactor.AsyncioSelectorReactor", "selectreactor.SelectReactor"])
def test_by_its_setting_alone_each_page_is_fetched_once(crawl: Callable[..., Crawl], reactor: str) -> None:
    with Site(60) as site:
        done = crawl(site.url(0), TWISTED_REACTOR=f"twisted.internet.{reactor}").finish()
        # Scrapy does not filter a start URL, so page 0 is new once more when a page links to it.
        assert site.hits() == {page: 2 if page == 0 else 1 for page in range(60)}
    stats = done.stats()
    assert stats["dupefilter/koel/items"] == 60
    assert stats["dupefilter/koel/bytes"] > 0
    assert "ERROR" not in done.log()


@pytest.mark.parametrize("debug", [False, True])
def test_logs_and_counts_like_scrapys_own(crawl: Callable[..., Crawl], debug: bool) -> None:
    with Site(40) as site:
        runs = (crawl(site.url(0), dupefilter=name, DUPEFILTER_DEBUG=debug).finish() for name in (KOEL, SCRAPY))
        ours, theirs = runs
    # Which page linked to another one first is up to the network.
    logs = [re.sub(r"<GET [^ ]+>|http:[^ )]+", "URL", done.log()) for done in (ours, theirs)]
    lines = [re.findall(r"\[scrapy\.dupefilters\] (.*)", log) for log in logs]
    assert sorted(lines[0]) == sorted(lines[1])
    assert len(lines[0]) == (theirs.stats()["dupefilter/filtered"] if debug else 1)
    assert ours.stats()["dupefilter/filtered"] == theirs.stats()["dupefilter/filtered"] > 0


# In a job directory.


@pytest.mark.parametrize("first", [KOEL, SCRAPY])
def test_a_crawl_that_was_stopped_goes_on(crawl: Callable[..., Crawl], job: Path, first: str) -> None:
    with Site(120) as site:
        crawl(site.url(0), dupefilter=first, JOBDIR=job, CLOSESPIDER_PAGECOUNT=40).finish()
        assert len(site.hits()) < 120
        done = crawl(site.url(0), JOBDIR=job).finish()
        hits = site.hits()
    assert hits.keys() == set(range(120))
    assert {page for page, count in hits.items() if count > 1} <= {0}
    assert done.stats()["dupefilter/koel/items"] == 120
    assert bool(re.search(r"Took over \d+ fingerprints", done.log())) == (first == SCRAPY)


PRINTS = [fingerprint(f"http://example.com/{page}") for page in range(25_000)]
AS_LINES = b"".join(print.hex().encode() + b"\n" for print in PRINTS)
AS_RECORDS = b"".join(len(print).to_bytes(2, "big") + print for print in PRINTS)
# Scrapy 2.19 appends to the lines of an older version.
UPDATED = AS_LINES[: 41 * 10_000] + AS_RECORDS[22 * 10_000 :]


@pytest.mark.parametrize(
    ("content", "whole"),
    [
        (AS_LINES, 25_000),
        (AS_LINES[:-2], 24_999),
        (AS_RECORDS, 25_000),
        (AS_RECORDS[:-2], 24_999),
        (AS_RECORDS + b"\0", 25_000),
        (UPDATED, 25_000),
        (b"", 0),
    ],
)
def test_requests_seen_is_taken_over_once_but_for_a_torn_end(job: Path, content: bytes, whole: int) -> None:
    for left in (content, AS_LINES + AS_RECORDS):
        (job / "requests.seen").write_bytes(left)
        KoelDupeFilter(str(job)).close("finished")
        with Filter(job / FILE, create=False) as seen:
            assert len(seen) == whole and all(seen.contains_many(PRINTS[:whole]))
        assert (job / "requests.seen").read_bytes() == left


@pytest.mark.parametrize("foreign", [b"no digits\n", b"a line\n", b"\xff" * 100])
def test_a_takeover_that_fails_is_made_again(job: Path, foreign: bytes) -> None:
    (job / "requests.seen").write_bytes(AS_LINES + foreign)
    with pytest.raises(ValueError):
        KoelDupeFilter(str(job))
    assert not (job / FILE).exists()


def test_a_second_crawl_in_the_job_directory_is_refused_before_it_touches_the_queues(
    crawl: Callable[..., Crawl], job: Path
) -> None:
    queues = job / "requests.queue"
    queues.mkdir()
    (queues / "active.json").write_text("not for you")
    with Site(1) as site, Filter(job / FILE):
        refused = crawl(site.url(0), JOBDIR=job)
        refused.process.wait()
        assert not site.hits()
    assert f"Another process crawls with {job}." in refused.log()
    assert "BlockingIOError" in refused.log()
    assert (queues / "active.json").read_text() == "not for you"


def test_the_settings_are_those_of_the_file(crawl: Callable[..., Crawl], job: Path) -> None:
    settings = {"KOEL_RATE": "1e-4", "KOEL_CAPACITY": "100000", "KOEL_REMEMBERS": "3600"}
    with Site(3) as site:
        for sync in ("None", "0", "0.5"):
            done = crawl(site.url(0), JOBDIR=job, KOEL_SYNC=sync, **settings).finish()
            assert "ERROR" not in done.log() and done.stats()["dupefilter/koel/bytes"] > 100_000
        refused = crawl(site.url(0), JOBDIR=job, KOEL_SYNC="-1")
        refused.process.wait()
    assert "sync must be a number of seconds" in refused.log()
    with Filter(job / FILE, create=False) as seen:
        assert seen.remembers is not None and seen.remembers >= 3600
        assert 1e-6 < seen.stats().rate_at_capacity <= 1e-4


# On record.


@pytest.mark.parametrize("sync", [1.0, 0, None])
def test_a_request_is_on_record_when_it_is_answered(job: Path, sync: float | None) -> None:
    dupefilter = KoelDupeFilter(str(job), sync=sync)
    dupefilter.open()
    for url in ("http://example.com/1", "http://example.com/2"):
        assert not dupefilter.request_seen(Request(url))
        with copied(job / FILE) as seen:
            assert fingerprint(url) in seen
    dupefilter.close("finished")
    assert files(job) == [FILE]


def test_a_last_save_that_fails_is_logged_and_raised(job: Path, caplog: pytest.LogCaptureFixture) -> None:
    url, away = "http://example.com/", job.with_name("away")
    dupefilter = KoelDupeFilter(str(job))
    dupefilter.open()
    dupefilter.request_seen(Request(url))
    job.rename(away)
    with pytest.raises(OSError):
        dupefilter.close("finished")
    assert "Its journal has them." in caplog.text
    with copied(away / FILE) as seen:
        assert fingerprint(url) in seen


# Beside Scrapy's own.

MEMORY = """
    import gc, hashlib, sys
    from scrapy.utils.misc import load_object

    class Fingerprinter:
        # It is given a number in the place of a request.
        def fingerprint(self, number):
            return hashlib.sha1(str(number).encode()).digest()

    def resident():
        with open("/proc/self/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024

    count, options = 400_000, eval(sys.argv[3])
    dupefilter = load_object(sys.argv[1])(sys.argv[2], fingerprinter=Fingerprinter(), **options)
    before = resident()
    for number in range(count):
        dupefilter.request_seen(number)
    gc.collect()
    print((resident() - before) / count)
"""


def memory(name: str, folder: Path, options: str = "{}") -> float:
    """The bytes for each request in a job directory. What is mapped of a file is the system's to write and to drop."""
    folder.mkdir()
    return float(run(MEMORY, name, folder, options).stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read in /proc")
def test_it_takes_a_twentieth_of_the_memory_of_scrapys_own(job: Path) -> None:
    theirs = memory(SCRAPY, job / "theirs")
    growing, told = memory(KOEL, job / "growing"), memory(KOEL, job / "told", "{'capacity': 400_000}")
    print(theirs, growing, told)
    assert theirs > 18 * told and theirs > 12 * growing


# Kills.


def test_after_a_kill_nothing_that_was_fetched_is_fetched_again(
    crawl: Callable[..., Crawl], killed: Killed, job: Path, tmp_path: Path
) -> None:
    """No more than this is promised: pages that were scheduled at a kill may be lost."""
    pages, most_kills = (2000, 30) if LONG else (500, 6)
    dice = random.Random(1)
    seeds, before = tmp_path / "seeds", set[str]()
    with Site(pages) as site:
        urls = [site.url(page) for page in range(pages)]
        for kill in range(most_kills + 1):
            # A run begins with pages that were not seen yet, and the last one with all of them.
            unseen = sorted(set(urls) - before)
            is_last = kill == most_kills or len(unseen) < pages // 10
            seeds.write_text("\n".join(unseen if is_last else dice.sample(unseen, 8)))
            site.forget_hits()
            if is_last:
                crawl(seeds=seeds, JOBDIR=job, LOG_LEVEL="INFO").finish()
            else:
                killed(site, dice.randint(1, pages // 20), held=kill % 2 == 0, seeds=seeds, JOBDIR=job)
                # Scrapy's queues do not fit the filter after a kill.
                shutil.rmtree(job / "requests.queue")
            hits = site.hits()
            fetched = {urls[page] for page in hits}
            assert fetched and max(hits.values()) == 1
            assert not before & fetched
            with copied(job / FILE) as seen:
                now = {url for url in urls if fingerprint(url) in seen}
            assert before | fetched <= now
            before = now
            if is_last:
                break
    # All are seen. That all were fetched is not promised.
    assert kill > 1 and before == set(urls)


def test_a_crawl_that_is_taken_up_after_a_kill_warns_of_its_queue(
    crawl: Callable[..., Crawl], killed: Killed, job: Path
) -> None:
    with Site(200) as site:
        first = killed(site, 20, url=site.url(0), JOBDIR=job)
        again = crawl(site.url(0), JOBDIR=job).finish()
        clean = crawl(site.url(0), JOBDIR=job).finish()
    assert "WARNING" in again.log() and "was not stopped cleanly" in again.log()
    assert f"no request that waited in {job / 'requests.queue'} is taken up" in again.log()
    assert "was not stopped cleanly" not in first.log() + clean.log()


def test_a_crawl_that_is_taken_up_after_two_ctrl_c_warns_of_its_queue(crawl: Callable[..., Crawl], job: Path) -> None:
    """The interpreter ends as ever then, and closes the filter."""
    with Site(200) as site:
        site.hold_after(20)
        run = crawl(site.url(0), JOBDIR=job)
        until(lambda: site.hits().total() > 20)
        run.process.send_signal(signal.SIGINT)
        until(lambda: "shutting down gracefully" in run.log())
        run.process.send_signal(signal.SIGINT)
        run.process.wait()
        site.release()
        assert "forcing unclean shutdown" in run.log() and "Spider closed" not in run.log()
        assert not list(job.glob(f"{FILE}.*"))
        assert "was not stopped cleanly" in crawl(site.url(0), JOBDIR=job).finish().log()


SQLITE = {
    "SCHEDULER_DISK_QUEUE": "scrapy.squeues.PickleLifoSQLiteQueue",
    "SCHEDULER_START_DISK_QUEUE": "scrapy.squeues.PickleFifoSQLiteQueue",
}


@pytest.mark.parametrize("queue", [{}, SQLITE], ids=["files", "sqlite"])
def test_with_the_scheduler_and_the_pipeline_of_the_examples_a_kill_loses_no_request_and_no_item(
    crawl: Callable[..., Crawl], killed: Killed, job: Path, tmp_path: Path, queue: dict[str, str]
) -> None:
    if queue and not hasattr(squeues, "PickleLifoSQLiteQueue"):
        pytest.skip("this Scrapy has no SQLite queues")
    pages, kills = (2000, 30) if LONG else (400, 5)
    dice = random.Random(1)
    pipelines = json.dumps({"pipelines.FlushedItems": 900})
    settings = {"JOBDIR": job, "SCHEDULER": SCHEDULER, "ITEM_PIPELINES": pipelines, "LOG_LEVEL": "INFO", **queue}
    items = tmp_path / "items.jsonl"
    taken_up = 0
    with Site(pages) as site:
        for kill in range(kills):
            goal = site.hits().total() + dice.randint(1, pages // kills // 2)
            log = killed(site, goal, held=kill % 2 == 0, url=site.url(0), **settings).log()
            assert "WARNING" not in log and "ERROR" not in log
            taken_up += "not done are taken up" in log
            # What a kill in the middle of a line leaves.
            with items.open("a") as file:
                file.write('{"url": "htt')
        # A clean stop, and what it leaves goes on as well.
        crawl(site.url(0), CLOSESPIDER_PAGECOUNT=20, **settings).finish()
        done = crawl(site.url(0), **settings).finish()
        hits = site.hits()
    assert hits.keys() == set(range(pages))
    # No more than what Scrapy had in progress: 16 in its downloader, and some that were handled. Page 0 begins each run.
    assert sum(hits.values()) - hits[0] - (pages - 1) <= 32 * kills
    assert taken_up >= kills - 1 and "taken up" not in done.log()
    with sqlite3.connect(job / "requests.pending") as pending:
        assert pending.execute("SELECT count(*) FROM request").fetchone() == (0,)
    assert {json.loads(line)["url"] for line in items.open()} == {site.url(page) for page in range(pages)}


def test_the_scheduler_of_the_examples_wants_its_filter_and_a_job_directory_only_for_what_it_keeps(
    crawl: Callable[..., Crawl], job: Path
) -> None:
    with Site(10) as site:
        assert crawl(site.url(0), SCHEDULER=SCHEDULER).finish().stats()["dupefilter/koel/items"] == 10
        refused = crawl(site.url(0), SCHEDULER=SCHEDULER, JOBDIR=job, dupefilter=SCRAPY)
        refused.process.wait()
    assert "KoelScheduler needs DUPEFILTER_CLASS" in refused.log()

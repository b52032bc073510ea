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
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from conftest import Start, running
from site_of_pages import Site

from pykoel import Filter

pytest.importorskip("scrapy")

from scrapy import Request, squeues
from scrapy.utils.misc import load_object
from scrapy.utils.request import RequestFingerprinter

from pykoel.scrapy import KoelDupeFilter

SPIDER = Path(__file__).parent / "spider.py"
EXAMPLES = Path(__file__).parent.parent / "examples"
LONG = os.environ.get("KOEL_LONG_TESTS") == "1"
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


@pytest.fixture
def job(tmp_path: Path) -> Path:
    path = tmp_path / "job"
    path.mkdir()
    return path


def fingerprint(url: str) -> bytes:
    return RequestFingerprinter().fingerprint(Request(url))


def saved(job: Path, urls: Iterable[str]) -> set[str]:
    """Those of some URLs that a run would find there, which changes nothing there."""
    with TemporaryDirectory() as folder:
        for file in job.glob(f"{FILE}*"):
            shutil.copy(file, folder)
        with Filter(Path(folder, FILE), create=False) as seen:
            return {url for url in urls if fingerprint(url) in seen}


def until(happened: Callable[[], bool]) -> None:
    """Waits for what has to happen at some time."""
    end = time.monotonic() + 60
    while not happened():
        assert time.monotonic() < end
        time.sleep(0.002)


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


def test_a_crawl_that_was_stopped_goes_on(crawl: Callable[..., Crawl], job: Path) -> None:
    with Site(120) as site:
        crawl(site.url(0), JOBDIR=job, CLOSESPIDER_PAGECOUNT=40).finish()
        assert len(site.hits()) < 120
        done = crawl(site.url(0), JOBDIR=job).finish()
        hits = site.hits()
        assert hits.keys() == set(range(120))
        assert {page for page, count in hits.items() if count > 1} <= {0}
    assert done.stats()["dupefilter/koel/items"] == 120


def test_a_crawl_that_scrapys_own_filter_began_goes_on(crawl: Callable[..., Crawl], job: Path) -> None:
    with Site(120) as site:
        crawl(site.url(0), dupefilter=SCRAPY, JOBDIR=job, CLOSESPIDER_PAGECOUNT=40).finish()
        assert len(site.hits()) < 120
        done = crawl(site.url(0), JOBDIR=job).finish()
        hits = site.hits()
        assert hits.keys() == set(range(120))
        assert {page for page, count in hits.items() if count > 1} <= {0}
    assert re.search(r"Took over \d+ fingerprints", done.log())


PRINTS = [fingerprint(f"http://example.com/{page}") for page in range(25_000)]
AS_LINES = b"".join(print.hex().encode() + b"\n" for print in PRINTS)
AS_RECORDS = b"".join(len(print).to_bytes(2, "big") + print for print in PRINTS)
# Scrapy 2.19 appends to the lines of an older version.
UPDATED = AS_LINES[: 41 * 10_000] + AS_RECORDS[22 * 10_000 :]


@pytest.mark.parametrize("content", [AS_LINES, AS_RECORDS, AS_LINES[:-2], AS_RECORDS[:-2], AS_RECORDS + b"\0", UPDATED])
def test_both_forms_of_requests_seen_are_taken_over_but_for_a_torn_end(job: Path, content: bytes) -> None:
    (job / "requests.seen").write_bytes(content)
    KoelDupeFilter(str(job)).close("finished")
    whole = PRINTS[:-1] if content in (AS_LINES[:-2], AS_RECORDS[:-2]) else PRINTS
    with Filter(job / FILE, create=False) as seen:
        assert len(seen) == len(whole)
        assert all(seen.contains_many(whole))
    assert (job / "requests.seen").read_bytes() == content


def test_an_empty_requests_seen_is_taken_over(job: Path) -> None:
    (job / "requests.seen").touch()
    dupefilter = KoelDupeFilter(str(job))
    assert not dupefilter.request_seen(Request("http://example.com/"))
    dupefilter.close("finished")


def test_requests_seen_is_taken_over_only_once(job: Path) -> None:
    KoelDupeFilter(str(job)).close("finished")
    (job / "requests.seen").write_bytes(AS_LINES)
    KoelDupeFilter(str(job)).close("finished")
    with Filter(job / FILE, create=False) as seen:
        assert len(seen) == 0


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
    with Site(3) as site:
        settings = {"KOEL_RATE": "1e-4", "KOEL_CAPACITY": "100000", "KOEL_REMEMBERS": "3600"}
        done = crawl(site.url(0), JOBDIR=job, **settings).finish()
    assert done.stats()["dupefilter/koel/bytes"] > 100_000
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
        assert saved(job, [url]) == {url}
    dupefilter.close("finished")
    assert [path.name for path in job.iterdir()] == [FILE]


def test_its_sync_is_a_setting(crawl: Callable[..., Crawl], job: Path) -> None:
    with Site(3) as site:
        for sync in ("None", "0", "0.5"):
            assert "ERROR" not in crawl(site.url(0), JOBDIR=job, KOEL_SYNC=sync).finish().log()
        refused = crawl(site.url(0), JOBDIR=job, KOEL_SYNC="-1")
        refused.process.wait()
        assert "sync must be a number of seconds" in refused.log()


def test_a_last_save_that_fails_is_logged_and_raised(job: Path, caplog: pytest.LogCaptureFixture) -> None:
    url, away = "http://example.com/", job.with_name("away")
    dupefilter = KoelDupeFilter(str(job))
    dupefilter.open()
    dupefilter.request_seen(Request(url))
    job.rename(away)
    with pytest.raises(OSError):
        dupefilter.close("finished")
    assert "Its journal has them." in caplog.text
    assert saved(away, [url]) == {url}


# Beside Scrapy's own.

SEEN = """
    import os, sys
    from scrapy import Request
    from scrapy.utils.misc import load_object
    from scrapy.utils.request import RequestFingerprinter

    dupefilter = load_object(sys.argv[1])(sys.argv[2], fingerprinter=RequestFingerprinter())
    dupefilter.open()
    number = 0
    while True:
        dupefilter.request_seen(Request(f"http://example.com/{number}"))
        number += 1
        os.write(1, b".")
"""


def test_a_kill_takes_nothing_that_was_seen_and_no_more_than_from_scrapys_own(job: Path) -> None:
    dice, lost = random.Random(1), {KOEL: 0, SCRAPY: 0}
    for name in lost:
        for kill in range(20 if LONG else 2):
            folder = job / f"{name}{kill}"
            folder.mkdir()
            command = [sys.executable, "-c", "if True:" + SEEN, name, str(folder)]
            with running(command, stdout=subprocess.PIPE) as process:
                assert process.stdout is not None
                count = len(os.read(process.stdout.fileno(), 1))
                time.sleep(dice.random() * 0.2)
                process.kill()
                count += len(process.stdout.read())
            again = load_object(name)(str(folder), fingerprinter=RequestFingerprinter())
            seen = [again.request_seen(Request(f"http://example.com/{number}")) for number in range(count)]
            again.close("finished")
            lost[name] += seen.count(False)
    print(lost)
    assert lost[KOEL] == 0 <= lost[SCRAPY]


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
    command = [sys.executable, "-c", "if True:" + MEMORY, name, str(folder), options]
    return float(subprocess.run(command, stdout=subprocess.PIPE, check=True, timeout=120).stdout)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="memory is read in /proc")
def test_it_takes_a_twentieth_of_the_memory_of_scrapys_own(job: Path) -> None:
    theirs = memory(SCRAPY, job / "theirs")
    growing, told = memory(KOEL, job / "growing"), memory(KOEL, job / "told", "{'capacity': 400_000}")
    print(theirs, growing, told)
    assert theirs > 18 * told and theirs > 12 * growing


# Kills.


def test_after_a_kill_nothing_that_was_fetched_is_fetched_again(
    crawl: Callable[..., Crawl], job: Path, tmp_path: Path
) -> None:
    """No more than this is promised: pages that were scheduled at a kill may be lost."""
    pages, most_kills = (2000, 30) if LONG else (500, 6)
    dice = random.Random(1)

    with Site(pages) as site:
        urls = [site.url(page) for page in range(pages)]
        seeds = tmp_path / "seeds"
        before: set[str] = set()
        killed = checked = 0
        for number in range(most_kills + 1):
            # A run begins with pages that were not seen yet, and the last one with all of them.
            unseen = sorted(set(urls) - before)
            is_last = number == most_kills or len(unseen) < pages // 10
            seeds.write_text("\n".join(unseen if is_last else dice.sample(unseen, 8)))
            goal = dice.randint(1, pages // 20)
            # Every other kill is at any moment, and the others while the crawler waits for pages.
            held = number % 2 == 0 and not is_last
            site.forget_hits()
            if held:
                site.hold_after(goal)
            run = crawl(seeds=seeds, JOBDIR=job, LOG_LEVEL="INFO")
            if is_last:
                run.finish()
            else:
                until(lambda: site.hits().total() >= goal or run.process.poll() is not None)
                time.sleep(dice.random() * 0.05)
                run.process.kill()
                killed += run.process.wait() != 0
            site.release()
            site.await_end_of_all()
            hits = site.hits()
            fetched = {urls[page] for page in hits}
            assert max(hits.values(), default=0) <= 1
            assert not before & fetched
            now = saved(job, urls)
            assert before | fetched <= now
            before = now
            checked += len(fetched)
            if is_last:
                break
            # Scrapy's queues do not fit the filter after a kill.
            shutil.rmtree(job / "requests.queue")
        assert killed > 1 and checked > 0
        # All are seen. That all were fetched is not promised.
        assert before == set(urls)


def test_scrapys_own_still_writes_what_is_taken_over(job: Path) -> None:
    theirs = load_object(SCRAPY)(str(job), fingerprinter=RequestFingerprinter())
    for number in range(10):
        theirs.request_seen(Request(f"http://example.com/{number}"))
    theirs.close("finished")
    ours = KoelDupeFilter(str(job))
    assert all(ours.request_seen(Request(f"http://example.com/{number}")) for number in range(10))
    ours.close("finished")


def test_a_crawl_that_is_taken_up_after_a_kill_warns_of_its_queue(crawl: Callable[..., Crawl], job: Path) -> None:
    with Site(200) as site:
        site.hold_after(20)
        run = crawl(site.url(0), JOBDIR=job)
        until(lambda: site.hits().total() > 20)
        run.process.kill()
        run.process.wait()
        site.release()
        killed = crawl(site.url(0), JOBDIR=job).finish()
        clean = crawl(site.url(0), JOBDIR=job).finish()
    assert "WARNING" in killed.log() and "was not stopped cleanly" in killed.log()
    assert f"no request that waited in {job / 'requests.queue'} is taken up" in killed.log()
    assert "was not stopped cleanly" not in run.log() + clean.log()


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
def test_with_the_scheduler_of_the_examples_a_kill_loses_no_request(crawl: Callable[..., Crawl], job: Path, queue: dict[str, str]) -> None:
    if queue and not hasattr(squeues, "PickleLifoSQLiteQueue"):
        pytest.skip("this Scrapy has no SQLite queues")
    pages, kills = (2000, 30) if LONG else (400, 5)
    dice = random.Random(1)
    settings = {"JOBDIR": job, "SCHEDULER": SCHEDULER, "LOG_LEVEL": "INFO", **queue}
    with Site(pages) as site:
        taken_up = 0
        for kill in range(kills):
            goal = site.hits().total() + dice.randint(1, pages // kills // 2)
            # Every other kill is at any moment, and the others while the crawler waits for pages.
            if kill % 2 == 0:
                site.hold_after(goal)
            run = crawl(site.url(0), **settings)
            until(lambda: site.hits().total() >= goal or run.process.poll() is not None)
            time.sleep(dice.random() * 0.05)
            run.process.kill()
            assert run.process.wait() != 0, run.log()
            site.release()
            site.await_end_of_all()
            assert "WARNING" not in run.log() and "ERROR" not in run.log()
            taken_up += "not done are taken up" in run.log()
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


def test_with_the_scheduler_and_the_pipeline_of_the_examples_a_kill_loses_no_item(
    crawl: Callable[..., Crawl], job: Path, tmp_path: Path
) -> None:
    pages, kills = (2000, 30) if LONG else (300, 3)
    settings = {"JOBDIR": job, "SCHEDULER": SCHEDULER, "LOG_LEVEL": "INFO"}
    settings["ITEM_PIPELINES"] = json.dumps({"pipelines.FlushedItems": 900})
    items = tmp_path / "items.jsonl"
    with Site(pages) as site:
        for _ in range(kills):
            goal = site.hits().total() + pages // kills // 2
            site.hold_after(goal)
            run = crawl(site.url(0), **settings)
            until(lambda: site.hits().total() >= goal or run.process.poll() is not None)
            run.process.kill()
            assert run.process.wait() != 0, run.log()
            site.release()
            # What a kill in the middle of a line leaves.
            with items.open("a") as file:
                file.write('{"url": "htt')
        done = crawl(site.url(0), **settings).finish()
        urls = {site.url(page) for page in range(pages)}
    assert "ERROR" not in done.log()
    assert {json.loads(line)["url"] for line in items.open()} == urls


def test_the_scheduler_of_the_examples_wants_its_filter_and_a_job_directory_only_for_what_it_keeps(
    crawl: Callable[..., Crawl], job: Path
) -> None:
    with Site(10) as site:
        assert crawl(site.url(0), SCHEDULER=SCHEDULER).finish().stats()["dupefilter/koel/items"] == 10
        refused = crawl(site.url(0), SCHEDULER=SCHEDULER, JOBDIR=job, dupefilter=SCRAPY)
        refused.process.wait()
    assert "KoelScheduler needs DUPEFILTER_CLASS" in refused.log()

"""What the docstring of `examples/crawl.py` promises."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import LONG, Start, copied, until
from site_of_pages import Site

pytest.importorskip("aiohttp")

EXAMPLE = Path(__file__).parent.parent / "examples" / "crawl.py"
WORKERS = 4

Crawl = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def crawl(start: Start) -> Crawl:
    def crawl(site: Site, state: Path, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(EXAMPLE), site.url(0), "--state", str(state), "--workers", str(WORKERS), *options]
        return start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    return crawl


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate()
    assert process.returncode == 0, output
    return output


def wait_for_hits(site: Site, process: subprocess.Popen[str], hits: int) -> None:
    until(lambda: site.hits().total() >= hits or process.poll() is not None)


def test_a_crawl_fetches_each_page_once_and_goes_on_where_it_ended(crawl: Crawl, tmp_path: Path) -> None:
    with Site(200) as site:
        finish(crawl(site, tmp_path / "state", "--pages", "20"))
        assert site.hits().total() == 20
        output = finish(crawl(site, tmp_path / "state"))
        assert site.hits() == Counter(range(200))
        assert "Fetched 180 pages, 0 failed, 0 wait. 200 were fetched in all runs." in output
        # There is nothing left to do.
        finish(crawl(site, tmp_path / "state"))
        assert site.hits() == Counter(range(200))


def test_a_crawl_stays_on_its_host(crawl: Crawl, tmp_path: Path) -> None:
    with Site(5) as other, Site(20, elsewhere=other.url(0)) as site:
        finish(crawl(site, tmp_path / "state"))
        assert len(site.hits()) == 20
        assert not other.hits()


def test_after_ctrl_c_only_pages_in_flight_are_fetched_again(crawl: Crawl, tmp_path: Path) -> None:
    with Site(300) as site:
        site.hold_after(100)
        process = crawl(site, tmp_path / "state")
        wait_for_hits(site, process, 101)
        process.send_signal(signal.SIGINT)
        assert "Stopped." in finish(process)
        site.release()
        first = site.hits()
        site.forget_hits()
        finish(crawl(site, tmp_path / "state"))
        second = site.hits()
    assert max(first.values()) == max(second.values()) == 1
    assert len(first.keys() & second.keys()) <= WORKERS
    assert first.keys() | second.keys() == set(range(300))


def test_after_kills_no_page_is_lost_and_only_pages_in_flight_are_fetched_again(crawl: Crawl, tmp_path: Path) -> None:
    pages, most_kills = (2000, 30) if LONG else (500, 8)
    state = tmp_path / "state"
    dice = random.Random(1)
    fetched: set[int] = set()
    before: set[int] = set()
    with Site(pages) as site:
        for kills in range(most_kills + 1):
            site.forget_hits()
            process = crawl(site, state)
            if kills < most_kills:
                wait_for_hits(site, process, dice.randint(1, pages // 5))
                time.sleep(dice.random() * 0.05)
                process.kill()
            process.communicate()
            site.await_end_of_all()
            hits = site.hits()
            assert max(hits.values(), default=0) <= 1
            assert not before & hits.keys()
            fetched |= hits.keys()
            with copied(state.with_name("state.koel")) as seen:
                now = {page for page in range(pages) if site.url(page) in seen}
            assert before <= now <= fetched
            assert len(hits.keys() - now) <= WORKERS
            before = now
            if process.returncode == 0:
                break
        assert process.returncode == 0
        assert fetched == before == set(range(pages))

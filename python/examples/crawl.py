"""A crawler of one site that goes on where it was stopped. It needs aiohttp.

    python crawl.py https://example.com/ --state example

keeps two files. `example.koel` is a filter of the pages that were fetched, which takes a few bytes a page. A page that
was added to it is there after the end of the process, however it ends. `example.urls` lists the URLs that were found. A
run begins with those that the filter does not have.

The URLs that a page links to are in the list before the page is in the filter. So this is what the end of a process
at any moment, by Ctrl-C or by SIGKILL, costs: the pages that are in flight are fetched again. No URL that a fetched
page links to is lost.

Not promised: of the pages, the fraction `--rate` is taken for fetched and never is. If the machine itself goes down,
the list may lack lines that the filter relies on. A page that cannot be reached, or whose server fails (500 and above),
is tried again in the next run only. Other answers, such as 404, count as fetched.
"""

import argparse
import asyncio
import os
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import aiohttp

from pykoel import Filter


class Links(HTMLParser):
    def __init__(self, page: str) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hrefs += [value for name, value in attrs if tag == "a" and name == "href" and value]


class Crawl:
    def __init__(self, seen: Filter, found: Path, host: str, pages: int) -> None:
        self.seen = seen
        self.host = host
        self.left = pages
        self.fetched = self.failed = 0
        # What a kill cut off at the end belongs to a page that is not in the filter, and is found again.
        urls = found.read_text("utf-8").split("\n")[:-1] if found.exists() else []
        # URLs that wait or are in flight.
        self.waiting = dict.fromkeys(url for url, done in zip(urls, seen.contains_many(urls)) if not done)
        # The list begins without what is fetched, or it would only ever grow.
        rest = found.with_suffix(".urls.new")
        rest.write_text("".join(f"{url}\n" for url in self.waiting), "utf-8")
        os.replace(rest, found)
        self.found = found.open("a", encoding="utf-8")
        self.queue: asyncio.Queue[str] = asyncio.Queue()
        for url in self.waiting:
            self.queue.put_nowait(url)

    def put(self, urls: Iterable[str]) -> None:
        """Puts URLs that are new on the list and in the queue."""
        for url in urls:
            if url not in self.waiting and url not in self.seen:
                self.waiting[url] = None
                self.queue.put_nowait(url)
                self.found.write(f"{url}\n")
        self.found.flush()

    def links(self, url: str, hrefs: Iterable[str]) -> Iterator[str]:
        for href in hrefs:
            try:
                link, _ = urldefrag(urljoin(url, href.strip()))
                parts = urlsplit(link)
            except ValueError:
                continue
            if parts.scheme in ("http", "https") and parts.netloc == self.host:
                yield link

    async def work(self, session: aiohttp.ClientSession) -> None:
        while True:
            url = await self.queue.get()
            if self.left > 0:
                self.left -= 1
                try:
                    # A redirect is a link: it may lead to a page that was fetched, or to another host.
                    async with session.get(url, allow_redirects=False) as response:
                        if response.status >= 500:
                            response.raise_for_status()
                        hrefs = [response.headers.get("Location", "")]
                        if response.content_type == "text/html":
                            hrefs += Links(await response.text(errors="replace")).hrefs
                except (aiohttp.ClientError, TimeoutError, ValueError):
                    self.failed += 1
                else:
                    # The order of these two lines is what a kill relies on.
                    self.put(self.links(url, hrefs))
                    self.seen.add(url)
                    self.fetched += 1
                    del self.waiting[url]
            self.queue.task_done()

    async def run(self, workers: int) -> None:
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            tasks = [asyncio.create_task(self.work(session)) for _ in range(workers)]
            done = asyncio.create_task(self.queue.join())
            # A task that ends has failed. Without it, the queue might never be done.
            await asyncio.wait([done, *tasks], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
                task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description="Crawls one site, and goes on where it was stopped.")
    parser.add_argument("urls", nargs="+", help="where to begin; all on one host")
    parser.add_argument("--state", type=Path, default=Path("crawl"), help="the files to keep, without their endings")
    parser.add_argument("--workers", type=int, default=8, help="how many pages to fetch at once")
    parser.add_argument("--pages", type=int, default=10_000, help="how many pages to fetch in this run at most")
    parser.add_argument("--rate", type=float, default=1e-6, help="the fraction of pages that may be left out")
    options = parser.parse_args()
    host = urlsplit(options.urls[0]).netloc
    # No other process has the filter meanwhile.
    with Filter(f"{options.state}.koel", rate=options.rate, wait=5) as seen:
        crawl = Crawl(seen, Path(f"{options.state}.urls"), host, options.pages)
        crawl.put(crawl.links(options.urls[0], options.urls))
        try:
            asyncio.run(crawl.run(options.workers))
        except KeyboardInterrupt:
            print("Stopped.")
        print(
            f"Fetched {crawl.fetched} pages, {crawl.failed} failed, {len(crawl.waiting)} wait. "
            f"{len(seen)} were fetched in all runs."
        )


if __name__ == "__main__":
    main()

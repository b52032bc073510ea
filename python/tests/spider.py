"""The spider of the tests: it follows all links, makes an item of each page, and leaves its statistics behind."""

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy
from scrapy.http import Response


class SiteSpider(scrapy.Spider):
    """`url` is where it begins, unfiltered, as is Scrapy's habit. `seeds` is a file of URLs that are filtered."""

    name = "site"

    def __init__(self, url: str | None = None, seeds: str | None = None, report: str | None = None) -> None:
        super().__init__()
        self.start_urls = [] if url is None else [url]
        self.seeds = [] if seeds is None else Path(seeds).read_text().split()
        self.report = report

    async def start(self) -> AsyncIterator[Any]:
        async for request in super().start():
            yield request
        for url in self.seeds:
            yield scrapy.Request(url)

    def parse(self, response: Response) -> Iterator[Any]:
        yield {"url": response.url}
        for link in response.css("a::attr(href)").getall():
            yield response.follow(link, callback=self.parse)

    def closed(self, reason: str) -> None:
        if self.report is not None:
            Path(self.report).write_text(json.dumps(self.crawler.stats.get_stats(), default=str))

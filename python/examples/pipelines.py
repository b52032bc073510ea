"""A Scrapy pipeline whose items survive a kill, as the requests of `scheduler.py` do::

    SCHEDULER = "myproject.scheduler.KoelScheduler"
    ITEM_PIPELINES = {"myproject.pipelines.FlushedItems": 900}

A request counts as done only when its items have passed the pipelines. This one writes each item before it passes. So
after a kill, an item is in the file, or its page is fetched again. An item that was written shortly before may come
twice.
"""

from typing import Any

from scrapy.utils.serialize import ScrapyJSONEncoder


class FlushedItems:
    """Appends items to `items.jsonl`, one a line, and leaves none in a buffer."""

    def open_spider(self, spider: object = None) -> None:
        self.file = open("items.jsonl", "ab+")
        # A kill may cut off the last line. Its page is fetched again.
        self.file.seek(0)
        self.file.truncate(sum(len(line) for line in self.file if line.endswith(b"\n")))
        self.encoder = ScrapyJSONEncoder()

    def process_item(self, item: Any, spider: object = None) -> Any:
        self.file.write(self.encoder.encode(item).encode() + b"\n")
        self.file.flush()
        return item

    def close_spider(self, spider: object = None) -> None:
        self.file.close()

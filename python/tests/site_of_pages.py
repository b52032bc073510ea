"""A small web site for the tests of crawlers: pages that link to each other, and counts of their hits."""

import time
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Self
from urllib.error import HTTPError
from urllib.request import urlopen


class Site:
    """A site of `pages` pages, from `/0` on, in a thread of its own. Use it in a `with`.

    Page n links to pages 2n + 1 and 2n + 2, so that each page has a way from page 0, and to two others, so that
    most links are duplicates. The links are the same in each run. With `elsewhere`, each page links to that URL, too.
    """

    def __init__(self, pages: int, elsewhere: str | None = None) -> None:
        self.pages = pages
        self.elsewhere = elsewhere
        self._hits: Counter[int] = Counter()
        self._connections = 0
        self._lock = Lock()
        self._held_from: int | None = None
        self._released = Event()
        site = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Headers and body are two writes. Nagle's algorithm would hold the second back.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                number = self.path.removeprefix("/")
                found = number.isdecimal() and int(number) < site.pages
                body = site._page(int(number)) if found else b"no such page"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def process_request(self, request: Any, client_address: Any) -> None:
                with site._lock:
                    site._connections += 1
                super().process_request(request, client_address)

            def shutdown_request(self, request: Any) -> None:
                super().shutdown_request(request)
                with site._lock:
                    site._connections -= 1

            def handle_error(self, request: object, client_address: object) -> None:
                """A crawler that is killed leaves connections behind, which is no error of the site."""

        self._server = Server(("127.0.0.1", 0), Handler)

    def links(self, page: int) -> list[int]:
        """The pages that a page links to."""
        children = [child for child in (2 * page + 1, 2 * page + 2) if child < self.pages]
        return [*children, 7 * page % self.pages, (page * page + 3) % self.pages]

    def _page(self, page: int) -> bytes:
        with self._lock:
            self._hits[page] += 1
            held = self._held_from is not None and self._hits.total() > self._held_from
        if held:
            self._released.wait()
        hrefs = [f"/{link}" for link in self.links(page)]
        if self.elsewhere is not None:
            hrefs.append(self.elsewhere)
        links = "\n".join(f'<a href="{href}">a page</a>' for href in hrefs)
        return f"<html><body>Page {page}.\n{links}</body></html>".encode()

    def url(self, page: int) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/{page}"

    def hits(self) -> Counter[int]:
        """How often each page was asked for so far."""
        with self._lock:
            return self._hits.copy()

    def forget_hits(self) -> None:
        with self._lock:
            self._hits.clear()

    def await_end_of_all(self) -> None:
        """Waits until all is counted that crawlers asked for which have ended, also if they were killed."""
        # Connections are accepted in the order in which they came. This one asks for no page.
        with suppress(HTTPError), urlopen(self.url(self.pages)):
            pass
        while True:
            with self._lock:
                if self._connections == 0:
                    return
            time.sleep(0.001)

    def hold_after(self, hits: int) -> None:
        """Lets the crawler wait for all pages after so many, until `release`: it cannot end before it is stopped."""
        self._released.clear()
        self._held_from = hits

    def release(self) -> None:
        self._held_from = None
        self._released.set()

    def __enter__(self) -> Self:
        Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._server.server_close()

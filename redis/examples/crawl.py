"""A crawler of several processes, that share what they have seen by a cluster.

    python3 redis/examples/crawl.py --cluster 127.0.0.1:7000,127.0.0.1:7001 --workers 3

The web is one site, served here over HTTP. Each worker is a process with a frontier of its own, seeded with a page of
its own; of the links that it finds, those that nobody had seen go into its frontier. In the end the site tells which
pages were fetched twice, and which were missed.
"""

import argparse
import http.client
import multiprocessing
import re
import sys
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from seen import Incomplete, Seen

BATCH = 20  # A worker asks about the links of this many pages at once.


def serve(pages, delay):
    """Serves this many pages on loopback; gives the address, and a list of how often each was fetched."""
    fetched = [0] * pages
    lock = threading.Lock()

    class Site(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            page = int(self.path[1:])
            # Two of the links make a tree, so that each page can be reached from the first.
            links = [link for link in (2 * page + 1, 2 * page + 2) if link < pages]
            links += [(page * 8 + link) * 0x9E3779B1 % pages for link in range(8)]
            body = "".join(f'<a href="/{link}">{link}</a>\n' for link in links).encode()
            time.sleep(delay)  # Pages take a while.
            with lock:
                fetched[page] += 1
                total = sum(fetched)
            if total % 1_000 == 0:
                print(f"{total} pages", flush=True)
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return "127.0.0.1:%d" % server.server_port, fetched


def work(worker, site, nodes, name, partitions):
    # A page that the set confuses with another is missed. Here, that would look like a fault.
    seen = Seen(nodes, name, partitions, error_rate=1e-7)
    browser = http.client.HTTPConnection(site)
    frontier = deque()
    links = [f"http://{site}/{worker}"]
    while True:
        try:
            answers = seen.insert_new(links)
        except Incomplete as error:
            # Nobody will be told of these again, so a crawler that is to go on later would write them down.
            print(f"{error.answers.count(True) + len(frontier)} pages were not fetched yet", file=sys.stderr)
            raise
        frontier.extend(link for link, new in zip(links, answers) if new)
        if not frontier:
            return
        found = set()
        for _ in range(min(BATCH, len(frontier))):
            browser.request("GET", frontier.popleft().removeprefix(f"http://{site}"))
            page = browser.getresponse().read().decode()
            found.update(f"http://{site}{path}" for path in re.findall('href="([^"]*)"', page))
        links = sorted(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cluster", required=True, help="some of its nodes: host:port,...")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--pages", type=int, default=10_000)
    parser.add_argument("--delay-ms", type=float, default=1)
    parser.add_argument("--partitions", type=int, default=64)
    options = parser.parse_args()
    site, fetched = serve(options.pages, options.delay_ms / 1_000)
    name = f"seen-{time.time_ns()}"  # Sets of other crawls may still be there.
    start = time.monotonic()
    # New processes, for a copy of this one would have its site, too.
    processes = multiprocessing.get_context("spawn")
    workers = [
        processes.Process(target=work, args=(worker, site, options.cluster.split(","), name, options.partitions))
        for worker in range(options.workers)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    pages, twice, missed = (sum(map(which, fetched)) for which in (bool, lambda n: n > 1, lambda n: n == 0))
    seconds = time.monotonic() - start
    print(f"{pages} pages in {seconds:.1f} s, {twice} of them twice; {missed} missed")
    sys.exit(missed > 0 or any(worker.exitcode for worker in workers))


if __name__ == "__main__":
    main()

"""Scrapy's duplicates filter in a process that `koel-bench` starts: `work` of `mod.rs` in Python.

The filter is given fingerprints of 20 bytes in the place of requests, since making them costs every set the same."""

import hashlib, os, struct, sys, time

from scrapy.dupefilters import RFPDupeFilter


class Fingerprints(RFPDupeFilter):
    def _fingerprint(self, request):
        return request


def item(number):
    return hashlib.sha1(number.to_bytes(8, "little"), usedforsecurity=False).digest()


def say(name, figure):
    print(name, figure, flush=True)


def status(field):
    with open("/proc/self/status") as file:
        line = next(line for line in file if line.startswith(field + ":"))
    return int(line.split()[1]) * 1024


def seen_of(filter):
    return filter._fingerprints


def fill(folder, items):
    before = status("VmRSS")
    filter = Fingerprints(folder, fingerprinter=object())
    # They are made beforehand, in parts, so that only the filter keeps them.
    counts = {}
    for name, first in ("add", 0), ("present", 0), ("hit", 0), ("miss", 1 << 40):
        took, count = 0, 0
        for part in range(first, first + items, 10_000):
            made = [item(number) for number in range(part, min(part + 10_000, first + items))]
            start = time.perf_counter()
            if name in ("add", "present"):
                seen = filter.request_seen
                for fingerprint in made:
                    count += not seen(fingerprint)
            else:
                seen = seen_of(filter)
                for fingerprint in made:
                    count += fingerprint in seen
            took += time.perf_counter() - start
        say(name, items / took)
        counts[name] = count
        if name == "add":
            say("memory", (status("VmRSS") - before) / items)
            say("anonymous", (status("VmRSS") - before) / items)
    say("taken", items - counts["add"])
    if counts != {"add": items, "present": 0, "hit": items, "miss": 0}:
        sys.exit(f"wrong answers for {items} items: {counts}")
    say("process", os.getpid())
    sys.stdin.read()


def again(folder, items):
    start = time.perf_counter()
    filter = Fingerprints(folder, fingerprinter=object())
    item(0) in seen_of(filter)
    say("open", time.perf_counter() - start)
    say("lost", sum(item(number) not in seen_of(filter) for number in range(items)))
    filter.close("finished")


def settle(folder, items):
    Fingerprints(folder, fingerprinter=object()).close("finished")


def add(folder, items):
    notes = os.open(os.path.join(os.path.dirname(folder), "answered"), os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
    filter = Fingerprints(folder, fingerprinter=object())
    say("process", os.getpid())
    number = 0
    while True:
        filter.request_seen(item(number))
        number += 1
        os.pwrite(notes, struct.pack("<QQ", number, 0), 0)


if __name__ == "__main__":
    task, folder, items = sys.argv[1:]
    {"fill": fill, "open": again, "settle": settle, "add": add}[task](folder, int(items))

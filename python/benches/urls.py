"""The URLs that are added and asked for. One process writes them to files, and the others read them there.

Each read makes new `str` objects. That matters: a `str` remembers its hash, and a crawler has not met its URLs
before."""

import itertools

FIRST_ABSENT = 1 << 40  # Numbers from here on are of URLs that nobody adds.
STEP = 7_368_787  # A prime larger than any number of items.


def url(number):
    """A URL of some seventy bytes. Neighbours have nothing in common but the beginning."""
    mixed = number * 0x9E3779B97F4A7C15 % 2**64
    return f"https://www.site-{mixed % 5003}.example/{mixed % 89}/articles/{mixed:016x}/page-{number % 97}.html"


class Urls:
    def __init__(self, folder):
        self.folder = folder

    def path(self, name):
        return f"{self.folder}/{name}.urls"

    def write(self, counts, absent):
        self.write_one("present", map(url, range(max(counts))))
        self.write_one("absent", map(url, range(FIRST_ABSENT, FIRST_ABSENT + absent)))
        # A set that is asked in the order in which it was filled finds its strings one behind the other in memory.
        for count in set(counts):
            self.write_one(f"shuffled-{count}", (url(at * STEP % count) for at in range(count)))

    def write_one(self, name, urls):
        with open(self.path(name), "w") as file:
            file.writelines(f"{url}\n" for url in urls)

    def stream(self, kind, name, first, end):
        """What a kind adds of them, one by one."""
        with open(self.path(name)) as file:
            for line in itertools.islice(file, first, end):
                yield kind.item(line[:-1])

    def list(self, kind, name, count):
        with open(self.path(name)) as file:
            return [kind.item(line) for line in file.read().splitlines()[:count]]

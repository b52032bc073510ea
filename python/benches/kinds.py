"""The sets that figures.py compares: how each is made, filled, asked and saved."""

import array, functools, hashlib, os, pickle, shutil, tempfile

RATE = 1e-6


class Kind:
    """How a set is made and asked. The loops are what is timed: each is what a user of that set would write."""

    package = None
    told = False  # Whether it has to be told the number of items.
    rate = RATE
    note = ""  # What the reader of its memory and files has to know.
    most = 1_000_000  # The most items for which a round takes seconds.

    def item(self, url):
        """What is added for a URL."""
        return url

    def add(self, seen, items):
        add = seen.add
        for item in items:
            add(item)

    def add_if_new(self, seen, items):
        add, new = seen.add, 0
        for item in items:
            if item not in seen:
                add(item)
                new += 1
        return new

    def count(self, seen, items):
        """How many of the items it has."""
        found = 0
        for item in items:
            if item in seen:
                found += 1
        return found

    def save(self, seen, path):
        with open(path, "wb") as file:
            pickle.dump(seen, file, protocol=pickle.HIGHEST_PROTOCOL)

    def load(self, path):
        with open(path, "rb") as file:
            return pickle.load(file)


class Set(Kind):
    label = "set of str"
    rate = 0
    note = "its file is a pickle"

    def make(self, items):
        return set()

    def add_many(self, seen, items):
        seen.update(items)


class Scrapy(Kind):
    """The set inside of the filter, given fingerprints: making them costs every filter the same."""

    label = "Scrapy's RFPDupeFilter"
    package = "scrapy"
    rate = 0
    note = "writes to its file while it adds"

    @functools.cached_property
    def keeps_bytes(self):
        """Versions up to 2.16, at least, keep strings of hex digits."""
        return hasattr(self.of(), "_fingerprints")

    def of(self, folder=None):
        from scrapy.dupefilters import RFPDupeFilter

        class Fingerprints(RFPDupeFilter):
            """Is given fingerprints in the place of requests."""

            def _fingerprint(self, request):
                return request

            request_fingerprint = _fingerprint  # What earlier versions call.

        return Fingerprints(folder, fingerprinter=object())

    def set_of(self, filter):
        return filter._fingerprints if self.keeps_bytes else filter.fingerprints

    def make(self, items):
        # Not the filter: what is timed is its set. It has nothing else without a file.
        return self.set_of(self.of())

    def item(self, url):
        digest = hashlib.sha1(url.encode(), usedforsecurity=False)
        return digest.digest() if self.keeps_bytes else digest.hexdigest()

    def save(self, seen, path):
        os.mkdir(path)
        filter = self.of(path)
        for item in seen:
            filter.request_seen(item)
        filter.close("finished")

    def load(self, path):
        return self.set_of(self.of(path))


class Rbloom(Kind):
    label = "rbloom"
    package = "rbloom"
    told = True
    note = "Python's hash differs in each process, so it refuses to be saved"

    def make(self, items):
        from rbloom import Bloom

        return Bloom(items, self.rate)

    def add_many(self, seen, items):
        seen.update(items)

    def save(self, seen, path):
        seen.save(path)


def sha256_of(item):
    return int.from_bytes(hashlib.sha256(item.encode()).digest()[:16], "big", signed=True)


class RbloomStable(Rbloom):
    label = "rbloom with SHA-256"
    note = "with a hash like the one that its documentation has for files"

    def make(self, items):
        from rbloom import Bloom

        return Bloom(items, self.rate, sha256_of)

    def load(self, path):
        from rbloom import Bloom

        return Bloom.load(path, sha256_of)


class Pybloom(Kind):
    label = "pybloom-live"
    package = "pybloom-live"
    told = True
    most = 200_000

    def make(self, items):
        from pybloom_live import BloomFilter

        return BloomFilter(items, self.rate)

    def add_if_new(self, seen, items):
        add, new = seen.add, 0
        for item in items:
            if not add(item):
                new += 1
        return new

    def save(self, seen, path):
        with open(path, "wb") as file:
            seen.tofile(file)

    def load(self, path):
        from pybloom_live import BloomFilter

        with open(path, "rb") as file:
            return BloomFilter.fromfile(file)


class Scalable(Pybloom):
    label = "pybloom-live, scalable"
    told = False

    def make(self, items):
        from pybloom_live import ScalableBloomFilter

        # As many as pykoel begins with, or what it was told.
        return ScalableBloomFilter(items or 10_000, self.rate)

    def load(self, path):
        from pybloom_live import ScalableBloomFilter

        with open(path, "rb") as file:
            return ScalableBloomFilter.fromfile(file)


class Fastbloom(Kind):
    label = "fastbloom-rs"
    package = "fastbloom-rs"
    told = True

    def make(self, items):
        from fastbloom_rs import BloomFilter

        return BloomFilter(items, self.rate)

    def add(self, seen, items):
        add = seen.add_str
        for item in items:
            add(item)

    def add_if_new(self, seen, items):
        add, new = seen.add_if_not_contains, 0
        for item in items:
            if not add(item):
                new += 1
        return new

    def count(self, seen, items):
        contains, found = seen.contains_str, 0
        for item in items:
            if contains(item):
                found += 1
        return found

    def add_many(self, seen, items):
        seen.add_str_batch(items)

    def count_many(self, seen, items):
        return sum(seen.contains_str_batch(items))

    def save(self, seen, path):
        seen.save_to_file_with_hashes(path)

    def load(self, path):
        from fastbloom_rs import BloomFilter

        return BloomFilter.from_file_with_hashes(path)


class Cuckoopy(Kind):
    label = "cuckoopy"
    package = "cuckoopy"
    told = True
    rate = 8 / 2**24  # Three bytes of fingerprint, two buckets of four.
    most = 100_000
    note = "Python's hash differs in each process, so a pickle is of no use in another one"

    def make(self, items):
        from cuckoopy import CuckooFilter

        # It is told buckets, and not items. These are a power of two, as in the paper on cuckoo filters, and half to
        # nearly full with that many items. The fuller it is, the more items it loses.
        buckets = 1 << (int(items / 4 / 0.95)).bit_length()
        return CuckooFilter(capacity=buckets, bucket_size=4, fingerprint_size=3)

    def add(self, seen, items):
        insert = seen.insert
        for item in items:
            insert(item)

    def add_if_new(self, seen, items):
        insert, new = seen.insert, 0
        for item in items:
            if item not in seen:
                insert(item)
                new += 1
        return new


class Koel(Kind):
    label = "pykoel, growing"
    package = "pykoel"
    note = "its save waits for the disk"

    def make(self, items):
        from pykoel import Filter

        return Filter(rate=self.rate)

    def add_if_new(self, seen, items):
        add, new = seen.add, 0
        for item in items:
            if add(item):
                new += 1
        return new

    def add_many(self, seen, items):
        return sum(seen.add_many(items))

    def count_many(self, seen, items):
        return sum(seen.contains_many(items))

    def hashes(self, seen, items):
        return array.array("Q", map(seen.hash_of, items))

    def save(self, seen, path):
        seen.save(path)

    def load(self, path):
        from pykoel import Filter

        return Filter(path, create=False)


class KoelInFile(Koel):
    label = "pykoel, kept in a file"
    note = "each answer survives a kill; its journal is mapped memory until it is closed, which is its save"

    def __init__(self):
        self.made = 0

    @functools.cached_property
    def folder(self):
        return tempfile.TemporaryDirectory(prefix="pykoel-")

    def make(self, items):
        from pykoel import Filter

        self.made += 1
        return Filter(os.path.join(self.folder.name, str(self.made)), rate=self.rate)

    def save(self, seen, path):
        seen.close()
        shutil.move(seen.path, path)


class KoelTold(Koel):
    label = "pykoel, capacity known"
    told = True

    def make(self, items):
        from pykoel import Filter

        return Filter(rate=self.rate, capacity=items)


KINDS = {
    "set": Set(),
    "scrapy": Scrapy(),
    "rbloom": Rbloom(),
    "rbloom-sha256": RbloomStable(),
    "fastbloom-rs": Fastbloom(),
    "pybloom": Pybloom(),
    "pybloom-scalable": Scalable(),
    "cuckoopy": Cuckoopy(),
    "pykoel": Koel(),
    "pykoel-told": KoelTold(),
    "pykoel-file": KoelInFile(),
}

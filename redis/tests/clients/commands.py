"""redis-py's commands for cuckoo filters, against one server. Arguments: its port, and the version of the protocol."""

import sys

import redis
from redis.exceptions import ResponseError

client = redis.Redis(port=int(sys.argv[1]), protocol=int(sys.argv[2]))
cf = client.cf()


def fails(call, *arguments, **options):
    try:
        call(*arguments, **options)
    except ResponseError as error:
        return str(error)
    raise AssertionError("it should have failed")


assert cf.reserve("made", 1_000, expansion=1, bucket_size=2, max_iterations=20)
assert "item exists" in fails(cf.reserve, "made", 1_000)

assert cf.add("made", "a") == 1
assert cf.add("made", "a") == 1
assert cf.addnx("made", "a") == 0
assert cf.addnx("made", "b") == 1
assert cf.exists("made", "a") == 1
assert cf.exists("made", "c") == 0
assert cf.exists("nothing", "c") == 0
assert cf.mexists("made", "a", "b", "c") == [1, 1, 0]
assert cf.count("made", "a") == 2

assert cf.insert("filled", ["a", "b", "a"], capacity=500) == [1, 1, 1]
assert cf.insertnx("filled", ["a", "c", "c"]) == [0, 1, 0]
assert "not found" in fails(cf.insert, "nothing", ["a"], nocreate=True)
assert "not found" in fails(cf.insertnx, "nothing", ["a"], nocreate=True)
assert cf.delete("filled", "a") == 1
assert cf.count("filled", "a") == 1
assert cf.delete("filled", "x") == 0
assert "Not found" in fails(cf.delete, "nothing", "a")

def info(key):
    """The first eight figures, that redis-py has names for in the second version of the protocol."""
    figures = cf.info(key)
    if not isinstance(figures, dict):
        names = "size bucketNum filterNum insertedNum deletedNum bucketSize expansionRate maxIteration"
        return [figures[name] for name in names.split()]
    return list(figures.values())[:8]


size, buckets, *others = info("made")
assert size > 0 and buckets > 0
assert others == [1, 3, 0, 2, 1, 20]
assert info("filled")[4] == 1

items = [f"item {number}" for number in range(100_000)]
for first in range(0, len(items), 10_000):
    assert cf.insertnx("large", items[first : first + 10_000]).count(1) > 9_900
position, chunks = 0, []
while True:
    position, chunk = cf.scandump("large", position)
    if position == 0:
        break
    chunks.append((position, chunk))
for position, chunk in chunks:
    assert cf.loadchunk("copy", position, chunk) in (b"OK", "OK", True)
assert all(cf.mexists("copy", *items))
assert info("copy")[1:] == info("large")[1:]  # It may take fewer bytes while it is new.

# Of an empty filter there is nothing, and a client that copies it so has nothing to load.
assert cf.reserve("empty", 100)
assert list(cf.scandump("empty", 0)) == [0, None]

pipeline = client.pipeline()
pipeline.cf().add("made", "z")
pipeline.cf().exists("made", "z")
assert pipeline.execute() == [1, 1]

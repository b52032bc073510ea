"""The recipe in Python, with a set that the one in Rust has filled. Argument: the nodes of the cluster."""

import sys
import threading
import time

import redis
from seen import Incomplete, Seen, partition_of

nodes = sys.argv[1].split(",")
clients = [redis.Redis(port=int(node.split(":")[1])) for node in nodes]
primaries = [client for client in clients if client.info("replication")["role"] == "master"]


def items(first, last):
    return [f"item {number}" for number in range(first, last)]


# Partitions are those of Rust, or half of the items would be new; and answers are in the order of the batch.
assert partition_of("123456789", 1 << 32) == 0xCBF43926
seen = Seen(nodes)
batch = items(4_000, 6_000)[::-1]
assert seen.insert_new(batch) == [int(item.split()[1]) >= 5_000 for item in batch]
assert seen.insert_new(batch) == [False] * 2_000
assert seen.insert_new([]) == []

# A node sleeps for so long that the reply counts as lost, and then does as it was told.
hasty = Seen(nodes, timeout=0.5)
hasty.insert_new(items(0, 1_000))
for primary in primaries:
    primary.config_resetstat()
sleeper = threading.Thread(target=primaries[0].execute_command, args=("DEBUG", "SLEEP", "1.5"))
sleeper.start()
time.sleep(0.2)
assert hasty.insert_new(items(6_000, 7_000)) == [True] * 1_000
sleeper.join()
calls = [client.info("commandstats")["cmdstat_cf.insertnx"]["calls"] for client in primaries]
assert calls[0] > calls[1] * 1.5, f"nothing was in doubt: {calls}"
assert seen.insert_new(items(6_000, 7_000)) == [False] * 1_000

# A partition that is full.
for primary in primaries:
    try:
        options = "EXPANSION", 0, "ERROR_RATE", 1e-9  # No item is taken for one that was seen.
        primary.execute_command("CF.RESERVE", "small:{00}", 100, *options)
    except redis.exceptions.ResponseError:  # It is for another node.
        pass
small = Seen(nodes, "small", partitions=1)
try:
    small.insert_new(items(0, 1_000))
    raise AssertionError("it was full")
except Incomplete as error:
    assert "full" in str(error)
    added = error.answers.count(True)
    assert 100 <= added < 500 and error.answers.count(None) == 1_000 - added

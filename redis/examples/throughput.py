"""How fast one client fills a set, by its number of partitions; and whose processor it takes.

    python3 redis/examples/throughput.py 127.0.0.1:7000,127.0.0.1:7001,127.0.0.1:7002
"""

import sys
import time

from seen import Seen

BATCH = 20_000
ITEMS = 2_000_000


def server_time(seen):
    """The processor time of all primaries."""
    nodes = seen.cluster.get_primaries()
    times = [seen.cluster.get_redis_connection(node).info("cpu") for node in nodes]
    return sum(cpu["used_cpu_user"] + cpu["used_cpu_sys"] for cpu in times)


def main():
    nodes = sys.argv[1].split(",")
    print("| partitions | items a second | client, µs an item | primaries, µs an item |")
    print("|---|---|---|---|")
    for partitions in (1, 16, 64, 256, 1_024):
        seen = Seen(nodes, f"throughput-{time.time_ns()}", partitions, capacity=ITEMS, timeout=10.0)
        client, servers, start = time.process_time(), server_time(seen), time.monotonic()
        for first in range(0, ITEMS, BATCH):
            seen.insert_new([f"https://example.com/page/{number}" for number in range(first, first + BATCH)])
        rate = ITEMS / (time.monotonic() - start)
        client, servers = time.process_time() - client, server_time(seen) - servers
        micros = [seconds * 1e6 / ITEMS for seconds in (client, servers)]
        print(f"| {partitions} | {rate:.0f} | {micros[0]:.2f} | {micros[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()

"""Measures one set for many machines by the size of the batches that are asked: `pykoel.ray` beside a Python set in an
actor of Ray, and beside Redis with koel's module.

    python benches/batches.py [--redis FOLDER --module FILE] [--out FOLDER] [--quick]

All processes are on this machine, and one client asks. It needs Ray, and for Redis redis-py (without hiredis), the folder
of redis-server (`redis/get-servers`) and the module (`cargo build --release -p koel-redis`).
"""

import argparse, os, pathlib, platform, shlex, subprocess, sys, tempfile, time

import ray
from pykoel.ray import SharedFilter

from urls import url

sys.path.append(str(pathlib.Path(__file__).parents[2] / "benches"))
from kit import Figures, run

SIZES = [100, 1_000, 10_000, 100_000]


class Koel:
    """A set of `pykoel.ray`."""

    def __init__(self, folder, partitions):
        self.set = SharedFilter(folder, partitions)
        self.add, self.contains, self.end = self.set.add_many, self.set.contains_many, self.set.close


class PythonSet:
    """An actor with a Python set, as it is mostly written: it loses everything when it dies."""

    class Actor:
        def __init__(self):
            self.set = set()

        def add(self, items):
            new = []
            for item in items:
                new.append(item not in self.set)
                self.set.add(item)
            return new

        def contains(self, items):
            return [item in self.set for item in items]

    def __init__(self, folder):
        self.actor = ray.remote(self.Actor).remote()

    def add(self, items):
        return ray.get(self.actor.add.remote(items))

    def contains(self, items):
        return ray.get(self.actor.contains.remote(items))

    def end(self):
        ray.kill(self.actor)


class Redis:
    """A set of koel's module. `appendonly` is `everysec`, which `pykoel.ray` does as well, or nothing is kept."""

    program = module = ""

    def __init__(self, folder, appendonly):
        import redis

        socket = os.path.join(folder, "socket")
        settings = ["--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", appendonly, "--dir", folder]
        command = [self.program, *settings, "--loadmodule", self.module]
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.client = redis.Redis(unix_socket_path=socket)
        while True:
            try:
                self.client.ping()
                break
            except redis.exceptions.ConnectionError:
                time.sleep(0.01)
        self.client.execute_command("CF.RESERVE", "seen", 1_000)

    def add(self, items):
        return [answer == 1 for answer in self.client.execute_command("CF.INSERTNX", "seen", "ITEMS", *items)]

    def contains(self, items):
        return [answer == 1 for answer in self.client.execute_command("CF.MEXISTS", "seen", *items)]

    def end(self):
        self.client.close()
        self.server.kill()
        self.server.wait()


def measure(make, size, count):
    """Items per second: new ones that are added, and present ones that are looked up."""
    items = [url(number) for number in range(count)]
    batches = [items[at : at + size] for at in range(0, count, size)]
    with tempfile.TemporaryDirectory() as folder:
        kind = make(folder)
        try:
            # It begins when all are there.
            kind.add(["warm"])
            figures = []
            for ask in [kind.add, kind.contains]:
                clock = time.perf_counter()
                answers = [ask(batch) for batch in batches]
                figures.append(count / (time.perf_counter() - clock))
                wrong = sum(answer is not True for batch in answers for answer in batch)
                assert wrong <= count // 10_000, f"{wrong} wrong answers"
            return figures
        finally:
            kind.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--redis", type=pathlib.Path, help="the folder with redis-server")
    parser.add_argument("--module", type=pathlib.Path, help="libkoel_redis.so")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results")
    parser.add_argument("--quick", action="store_true", help="few items, once: to see whether it runs")
    options = parser.parse_args()
    kinds = {
        "pykoel.ray, 2 partitions": lambda folder: Koel(folder, 2),
        "pykoel.ray, 1 partition": lambda folder: Koel(folder, 1),
        "a Python set in an actor": PythonSet,
    }
    if options.redis:
        Redis.program, Redis.module = str(options.redis / "redis-server"), str(options.module.resolve())
        kinds["Redis with koel's module, everysec"] = lambda folder: Redis(folder, "yes")
        kinds["Redis with koel's module, in memory"] = lambda folder: Redis(folder, "no")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(include_dashboard=False, log_to_driver=False, object_store_memory=1 << 30)
    most, calls, rounds = (2_000, 10, 1) if options.quick else (1_000_000, 1_000, 3)
    figures = Figures("batches")
    figures.say("command", f"{shlex.join(['python', 'benches/batches.py', *sys.argv[1:]])}, {run()}")
    figures.say("versions", f"Python {platform.python_version()}, Ray {ray.__version__}")
    for _ in range(rounds):
        for size in SIZES:
            for kind, make in kinds.items():
                here = min(size, most)
                for what, speed in zip(("add", "look up"), measure(make, here, min(most, calls * here)), strict=True):
                    figures.note(kind, what, speed / 1_000, "k/s", f"{size:,}")
    figures.write(options.out / "batches.csv")


if __name__ == "__main__":
    main()

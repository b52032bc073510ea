#!/usr/bin/env python3
"""Measures the module beside plain keys, and beside RedisBloom if you have it. Python's standard library is enough.

    redis/bench/run.py --servers DIR --module FILE [--bloom FILE] [--out DIR] [--quick]

What is compared is the CPU time of the server's main thread, as `INFO cpu` tells it, for each item: that is
what limits a server. Commands come from redis-benchmark, in pipelines. The kinds alternate, and the table has
medians. Memory is what `MEMORY USAGE` says, and what the process grew by."""

import argparse, os, pathlib, re, socket, statistics, subprocess, sys, tempfile, time

sys.path.append(str(pathlib.Path(__file__).parents[2] / "benches"))
from kit import Figures, resident, run

KINDS = ["keys", "koel", "bloom"]
WORK = {  # For each kind of work: items a command, and the command for plain keys and for filters.
    "add, 1 a command": (1, ["SET", "{item}", "1"], ["CF.ADD", "set", "{item}"]),
    "add if new, 1 a command": (1, None, ["CF.ADDNX", "set", "{item}"]),
    "exists, 1 a command": (1, ["EXISTS", "{item}"], ["CF.EXISTS", "set", "{item}"]),
    "add, 100 a command": (100, ["MSET"] + ["{item}", "1"] * 100, ["CF.INSERT", "set", "ITEMS"] + ["{item}"] * 100),
    "add if new, 100 a command": (100, None, ["CF.INSERTNX", "set", "ITEMS"] + ["{item}"] * 100),
    "exists, 100 a command": (100, ["EXISTS"] + ["{item}"] * 100, ["CF.MEXISTS", "set"] + ["{item}"] * 100),
}


class Server:
    """A server in a process and a folder of its own."""

    def __init__(self, options, *settings):
        self.options = options
        self.folder = tempfile.TemporaryDirectory()
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.settings = list(settings)
        self.start()

    def start(self):
        program = os.path.join(self.options.servers, self.options.server)
        log = open(os.path.join(self.folder.name, "log"), "a")
        command = [program, "--port", str(self.port), "--save", "", "--dir", self.folder.name, *self.settings]
        self.process = subprocess.Popen(command, stdout=log, stderr=log)
        for _ in range(60_000):
            try:
                self.socket = socket.create_connection(("127.0.0.1", self.port))
                self.stream = self.socket.makefile("rb")
                if self.ask("PING") == "PONG":
                    return
            except (OSError, RuntimeError):
                time.sleep(0.01)
        raise RuntimeError("the server does not start")

    def send(self, *command):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in command]
        parts = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
        self.socket.sendall(b"*%d\r\n%s" % (len(words), parts))

    def receive(self):
        line = self.stream.readline()
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.stream.read(int(rest) + 2)[:-2].decode("latin-1")
        if kind == b"*":
            return [self.receive() for _ in range(int(rest))]
        raise RuntimeError(f"a reply that begins with {line}")

    def ask(self, *command):
        self.send(*command)
        return self.receive()

    def info(self, section, field):
        return re.search(rf"^{field}:(\S+)", self.ask("INFO", section), re.M)[1]

    def cpu(self):
        return sum(float(self.info("cpu", f"used_cpu_{kind}_main_thread")) for kind in ("user", "sys"))

    def resident(self):
        return resident(self.process.pid)

    def ran(self):
        """Nanoseconds that the main thread has run, as the scheduler counts them."""
        path = f"/proc/{self.process.pid}/task/{self.process.pid}/schedstat"
        return int(pathlib.Path(path).read_text().split()[0])

    def stop(self):
        self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def modules(options):
    found = {"keys": [], "koel": ["--loadmodule", options.module]}
    if options.bloom:
        found["bloom"] = ["--loadmodule", options.bloom]
    return found


def microseconds(server, options, items, command):
    """The main thread's CPU time for an item of such commands."""
    words = [word.format(item="url:__rand_int__") for word in command]
    count = max(1, (options.items // items))
    tool = "valkey-benchmark" if options.server.startswith("valkey") else "redis-benchmark"
    # A filter takes a few copies of an item, so those that add copies do it to items that hardly ever repeat.
    pool = options.pool * (1_000 if command[0] in ("CF.ADD", "CF.INSERT") else 1)
    program = [os.path.join(options.servers, tool), "-p", str(server.port), "-c", "10", "-r", str(pool)]
    program += ["-P", "32" if items == 1 else "4", "-n", str(count), "-q", *words]
    before = server.cpu()
    subprocess.run(program, stdout=subprocess.DEVNULL, check=True)
    return (server.cpu() - before) / (count * items) * 1e6


def throughput(options, write):
    for _ in range(options.repeats):
        for kind, settings in modules(options).items():
            with Server(options, *settings) as server:
                for work, (items, plain, filtered) in WORK.items():
                    command = plain if kind == "keys" else filtered
                    if command is None:
                        continue
                    # What is added meets an empty set; what is asked, one with everything.
                    if work.startswith("add"):
                        server.ask("FLUSHALL")
                    write("cpu", work, kind, "us/item", microseconds(server, options, items, command))


def lookup(options, write):
    """Where the time of a lookup goes: what single commands take that do less and less of it."""
    commands = {
        "EXISTS": ["EXISTS", "{item}"],
        "CF.EXISTS, all items": ["CF.EXISTS", "set", "{item}"],
        "CF.EXISTS, ten items": ["CF.EXISTS", "small", "{item}"],
        "CF.EXISTS, no such key": ["CF.EXISTS", "none", "{item}"],
        "TYPE": ["TYPE", "set"],
        "PING": ["PING"],
    }
    with Server(options, *modules(options)["koel"]) as server:
        microseconds(server, options, 1, ["SET", "{item}", "1"])
        microseconds(server, options, 1, ["CF.ADDNX", "set", "{item}"])
        fill(server, "small", 10)
        for _ in range(options.repeats):
            for name, command in commands.items():
                write("cpu of a command", name, "koel", "us", microseconds(server, options, 1, command))


def urls(first, count):
    return [b"https://site%d.example/page/%d" % (number % 1_000, number) for number in range(first, first + count)]


def fill(server, key, items):
    """Adds so many URLs, and returns how many were taken for seen."""
    seen, waiting = 0, 0
    for first in range(0, items, 1_000):
        server.send("CF.INSERTNX", key, "ITEMS", *urls(first, min(1_000, items - first)))
        waiting += 1
        if waiting == 16:
            seen += server.receive().count(0)
            waiting -= 1
    return seen + sum(server.receive().count(0) for _ in range(waiting))


def latency(server, name, before_item, items, of, kind, write):
    """What single commands take of the main thread, with all that the server does in between."""
    costs = []
    for item in items:
        before = server.ran()
        server.ask(name, *before_item, item)
        costs.append(server.ran() - before)
    costs.sort()
    for part in (0.5, 0.9999, 1):
        cost = costs[min(int(part * len(costs)), len(costs) - 1)]
        write(f"one {name}, CPU time of {100 * part:g} %", of, kind, "ms", cost / 1e6)
    write(f"one {name}, above 2 ms of CPU time", of, kind, f"of {len(costs)}", sum(cost > 2e6 for cost in costs))


def memory(options, write):
    absent = 200_000 if options.quick else 1_000_000
    for name, reserve in {
        "koel, reserved, 0.01 %": [options.many, "ERROR_RATE", "0.0001"],
        "koel, made small, 0.01 %": [1_024, "ERROR_RATE", "0.0001"],
        "koel, fixed, 0.01 %": [options.many, "ERROR_RATE", "0.0001", "EXPANSION", 0],
        "koel, reserved, 0.1 %": [options.many],
        "koel, made small, 0.1 %": [1_024],
        "bloom, reserved": [options.many],
        "bloom, made small": [1_024, "EXPANSION", 2],
    }.items():
        kind = name.split(",")[0]
        if kind not in modules(options):
            continue
        with Server(options, *modules(options)[kind]) as server:
            before = server.resident()
            server.ask("CF.RESERVE", "set", *reserve)
            cpu = server.cpu()
            refused = fill(server, "set", options.many)
            cpu = server.cpu() - cpu
            write("memory", name, kind, "bytes/item", server.ask("MEMORY", "USAGE", "set") / options.many)
            write("memory, resident", name, kind, "bytes/item", (server.resident() - before) / options.many)
            write("new items taken for seen", name, kind, "of a million", refused / options.many * 1e6)
            found = sum(
                sum(server.ask("CF.MEXISTS", "set", *urls(first, 1_000)))
                for first in range(1_000_000_000, 1_000_000_000 + absent, 1_000)
            )
            write("false positives", name, kind, "of a million", found / absent * 1e6)
            # One item a command.
            if "EXPANSION" in reserve and kind == "koel":
                continue
            latency(server, "CF.ADDNX", ["set"], urls(options.many, options.many // 50), name, kind, write)
    with Server(options) as server:
        keys = options.many // 10
        before = server.resident()
        for first in range(0, keys, 1_000):
            server.ask("MSET", *(word for url in urls(first, 1_000) for word in (url, b"")))
        write("memory, resident", "plain keys", "keys", "bytes/item", (server.resident() - before) / keys)
        latency(server, "EXISTS", [], urls(keys, options.many // 50), "plain keys", "keys", write)


def small(options, write):
    """A hundred thousand sets of ten items: bytes for each, beyond a key with an empty string."""
    count = 10_000 if options.quick else 100_000
    for kind, settings in modules(options).items():
        with Server(options, *settings) as server:
            def used(command):
                server.ask("FLUSHALL")
                before = int(server.info("memory", "used_memory"))
                for number in range(0, count, 100):
                    for other in range(number, number + 100):
                        server.send(*command(other))
                    for _ in range(100):
                        server.receive()
                return (int(server.info("memory", "used_memory")) - before) / count

            items = [b"item:%d" % item for item in range(10)]
            empty = used(lambda number: ("SET", f"key:{number:06}", ""))
            filters = {
                "keys": lambda number: ("SADD", f"key:{number:06}", *items),
                "koel": lambda number: ("CF.INSERT", f"key:{number:06}", "ITEMS", *items),
                "bloom": lambda number: ("CF.INSERT", f"key:{number:06}", "CAPACITY", 100, "ITEMS", *items),
            }
            write("ten items, beyond an empty key", "small sets", kind, "bytes/key", used(filters[kind]) - empty)


def saving(options, write):
    """A background save of a large filter, what 5,000 writes meanwhile copy, and how fast it is loaded."""
    huge = pathlib.Path("/sys/kernel/mm/transparent_hugepage/enabled")
    items = options.many * 4
    for pages in ("no", "yes"):
        settings = ["--disable-thp", "yes" if pages == "no" else "no"]
        with Server(options, *modules(options)["koel"], *settings) as server:
            server.ask("CF.RESERVE", "set", items + 10_000, "ERROR_RATE", "0.000000001", "EXPANSION", 0)
            fill(server, "set", items)
            name = f"{server.ask('MEMORY', 'USAGE', 'set') >> 20} MiB, huge pages {pages} ({huge.read_text().strip() if huge.exists() else 'not there'})"
            server.ask("BGSAVE")
            for item in urls(items, 5_000):
                server.ask("CF.ADDNX", "set", item)
            write("fork", name, "koel", "ms", int(server.info("stats", "latest_fork_usec")) / 1_000)
            while server.info("persistence", "rdb_bgsave_in_progress") == "1":
                time.sleep(0.05)
            write("copied on write in a save", name, "koel", "MiB", int(server.info("persistence", "rdb_last_cow_size")) / 2**20)
            # How fast it is loaded is asked once.
            if pages == "yes":
                continue
            # Some of them are a GiB.
            for copy in range(0 if options.quick else 5):
                server.ask("COPY", "set", f"copy:{copy}")
            server.ask("SAVE")
            file = os.path.join(server.folder.name, "dump.rdb")
            name = f"{os.path.getsize(file) >> 20} MiB"
            cat = lambda: (time.time(), subprocess.run(["cat", file], stdout=subprocess.DEVNULL), time.time())
            cat()
            times = [end - start for start, _, end in (cat() for _ in range(3))]
            server.stop()
            server.start()
            log = pathlib.Path(server.folder.name, "log").read_text()
            loaded = float(re.findall(r"DB loaded from disk: ([\d.]+)", log)[-1])
            write("loaded at, of the speed of cat", name, "koel", "ratio", statistics.median(times) / loaded)
            write("loaded at", name, "koel", "MiB/s", os.path.getsize(file) / 2**20 / loaded)


def ticks(options, write):
    """Single commands on a large filter that forgets, while a tick of three seconds follows another."""
    with Server(options, *modules(options)["koel"]) as server:
        server.ask("CF.RESERVE", "set", options.many * 20, "FORGETAFTER", 42)
        fill(server, "set", options.many // 5)
        name = f"{server.ask('MEMORY', 'USAGE', 'set') >> 20} MiB, a tick every 3 s"
        end = time.time() + (3 if options.quick else 30)
        items = iter(urls(options.many, 2_000_000))
        latency(server, "CF.ADDNX", ["set"], iter(lambda: next(items) if time.time() < end else None, None), name, "koel", write)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", required=True, help="the folder with redis-server and redis-benchmark")
    parser.add_argument("--server", default="redis-server", help="or valkey-server")
    parser.add_argument("--module", required=True, help="libkoel_redis.so, of a release build")
    parser.add_argument("--bloom", help="redisbloom.so, to compare with")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results", help="the folder for results.csv")
    parser.add_argument("--quick", action="store_true", help="tiny figures, to try it")
    parser.add_argument("--only", help="one of: throughput, lookup, memory, small, saving, ticks")
    options = parser.parse_args()
    options.module = os.path.abspath(options.module)
    options.items, options.pool, options.many, options.repeats = (
        (20_000, 20_000, 20_000, 1) if options.quick else (2_000_000, 2_000_000, 10_000_000, 3)
    )
    figures = Figures("module")
    figures.say("run", run())

    def write(what, at, kind, unit, value):
        figures.note(kind, what, value, unit, at)
        print(what, at, kind, f"{value:.4g} {unit}", sep="\t", flush=True)

    for part in (throughput, lookup, memory, small, saving, ticks):
        if options.only in (None, part.__name__):
            part(options, write)
    figures.write(options.out / "results.csv")


if __name__ == "__main__":
    sys.exit(main())

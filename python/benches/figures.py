#!/usr/bin/env python3
"""Measures pykoel beside what Python has otherwise for "have we seen this before?".

    python benches/figures.py [--out DIR] [--only KIND ...] [--quick]

The standard library is enough. Peers that are not installed are left out, and named in the table. Each kind is
measured in processes of its own, so that no kind finds the memory of another one. The kinds alternate, and the
table has medians.

Speed is CPU time, because other work may take a core meanwhile. Files are measured in elapsed time."""

import argparse, ctypes, datetime, gc, importlib.metadata, importlib.util, json, os, pathlib, platform, shlex
import subprocess, sys, tempfile, time
from concurrent.futures import ThreadPoolExecutor

from kinds import KINDS, RATE, Scrapy
from urls import Urls, url

sys.path.append(str(pathlib.Path(__file__).parents[2] / "benches"))
from kit import Figures, machine, resident

ROUNDS = 3
LEVELS = [1, 2, 10]  # How many times the told number of items an overfull filter is given.
DEADLINE = 480  # Seconds. What would begin later is left out.
BEGAN = time.monotonic()
PATIENCE = 150  # Seconds for one process.


def is_there(package):
    if package == "pykoel":  # It may be on the path and not installed.
        return importlib.util.find_spec("pykoel") is not None
    try:
        return package is None or bool(importlib.metadata.version(package))
    except importlib.metadata.PackageNotFoundError:
        return False


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "of this tree"


# What a process of its own does.


def timed(work, *arguments):
    """Nanoseconds of CPU time, and what the work returned."""
    began = time.process_time_ns()
    result = work(*arguments)
    return time.process_time_ns() - began, result


def speed(kind, urls, items):
    """Nanoseconds an item."""
    figures = {}

    def note(what, work, seen, some, at_least=0, at_most=None):
        took, found = timed(work, seen, some)
        figures[what] = took / items
        if at_least > (found or 0):
            figures[f"lost: {what}"] = items - found
        if at_most is not None and found > at_most:
            figures[f"wrong: {what}"] = found

    def present():
        return urls.list(kind, "present", items)

    def shuffled():
        return urls.list(kind, f"shuffled-{items}", items)

    def absent():
        return urls.list(kind, "absent", items)

    # The expected number is one, or less. Ten are not chance.
    most = max(10, 10 * RATE * items)
    seen = kind.make(items)
    note("add", kind.add, seen, present())
    note("look up, present", kind.count, seen, shuffled(), at_least=items)
    note("look up, absent", kind.count, seen, absent(), at_most=most)
    if hasattr(kind, "count_many"):
        note("look up many, present", kind.count_many, seen, shuffled(), at_least=items)
        note("look up many, absent", kind.count_many, seen, absent(), at_most=most)
    if hasattr(kind, "hashes"):
        note("look up many hashes, present", kind.count_many, seen, kind.hashes(seen, shuffled()), at_least=items)
        note("look up many hashes, absent", kind.count_many, seen, kind.hashes(seen, absent()), at_most=most)
    del seen
    seen = kind.make(items)
    note("add if new", kind.add_if_new, seen, present(), at_least=items - most)
    if hasattr(kind, "add_many"):
        del seen
        seen = kind.make(items)
        note("add many", kind.add_many, seen, present())
        assert kind.count(seen, shuffled()) == items, "add many lost items"
    if hasattr(kind, "hashes"):
        del seen
        seen = kind.make(items)
        note("add many hashes", kind.add_many, seen, kind.hashes(seen, present()), at_least=items - most)
        assert kind.count(seen, shuffled()) == items, "add many hashes lost items"
    return figures


def loop(kind, urls, items):
    """What the loop alone takes: it is in all figures of one item at a time."""

    def nothing(some):
        for _ in some:
            pass

    return {"loop": timed(nothing, urls.list(kind, "present", items))[0] / items}


def memory(kind, urls, items, path):
    """Bytes an item by which the process grows, at the end and at most meanwhile; then saves."""
    kind.add(kind.make(1_000), urls.stream(kind, "absent", 0, 1_000))  # Imports what it needs.
    gc.collect()
    # Memory that the allocator has in stock would not be counted.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # Forgets the peak.
    before = resident()
    seen = kind.make(items)
    kind.add(seen, urls.stream(kind, "present", 0, items))
    gc.collect()
    after, peak = resident(), resident(field="VmHWM")
    figures = {"memory": (after - before) / items, "memory, peak": (peak - before) / items}
    if hasattr(seen, "stats"):
        figures["rate at the end"] = seen.stats().rate
    try:
        began = time.perf_counter_ns()
        kind.save(seen, path)
        took = time.perf_counter_ns() - began
    except Exception as error:
        return figures | {"says": f"{type(error).__name__}: {error}"}
    path = pathlib.Path(path)
    files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
    figures["file"] = sum(file.stat().st_size for file in files) / items
    if not isinstance(kind, Scrapy):  # It writes while it adds, so there is no moment at which it saves.
        figures["save"] = took / 1e6
    return figures


def load(kind, urls, items, path):
    kind.make(1)  # Imports what it needs.
    began = time.perf_counter_ns()
    seen = kind.load(path)
    took = time.perf_counter_ns() - began
    return {"load": took / 1e6, "lost": items - kind.count(seen, urls.stream(kind, "present", 0, items))}


def overfull(kind, urls, told, absent):
    """The rate of false positives after as many items as were told, and after more of them."""
    seen, added, figures = kind.make(told), 0, {}
    for level in LEVELS:
        failed = None
        try:
            for item in urls.stream(kind, "present", added, told * level):
                kind.add(seen, [item])
                added += 1
        except Exception as error:
            failed = f"{type(error).__name__} after {added:,} items"
        figures[f"{level} rate"] = kind.count(seen, urls.stream(kind, "absent", 0, absent)) / absent
        figures[f"{level} lost"] = added - kind.count(seen, urls.stream(kind, "present", 0, added))
        if failed:
            figures[f"{level} says"] = failed
            break
    return figures


WORKS = {"speed": speed, "loop": loop, "memory": memory, "load": load, "overfull": overfull}


def child(work, name, folder, arguments):
    print(json.dumps(WORKS[work](KINDS[name], Urls(folder), *arguments)))


# The process that starts them.


def start(work, name, folder, *arguments):
    """What a process of its own found, or why it found nothing."""
    patience = min(PATIENCE, DEADLINE - (time.monotonic() - BEGAN))
    if patience <= 0:
        return {"failed": "no time was left"}
    command = [sys.executable, __file__, "--child", json.dumps([work, name, folder, arguments])]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience)
    except subprocess.TimeoutExpired:
        return {"failed": f"not done after {patience:.0f} s"}
    if done.returncode != 0:
        return {"failed": (done.stderr.strip().splitlines() or ["killed"])[-1]}
    return json.loads(done.stdout)


def unit(what):
    units = {"ns/item": ("add", "look up", "loop"), "bytes/item": ("memory", "file"), "ms": ("save", "load"), "share": ("rate", "overfull")}
    return next((unit for unit, names in units.items() if what.startswith(names)), "items")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "results")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=list(KINDS), metavar="KIND")
    parser.add_argument("--quick", action="store_true", help="few items, once: to see whether it runs")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return child(*json.loads(options.child))

    items, told, absent, rounds = (20_000, 5_000, 50_000, 1) if options.quick else (1_000_000, 100_000, 1_000_000, ROUNDS)
    names = [name for name in options.only if is_there(KINDS[name].package)]
    missing = sorted({KINDS[name].package for name in options.only if name not in names})
    for package in missing:
        print(f"{package} is not installed, and left out", file=sys.stderr)
    count = {name: min(items, KINDS[name].most) for name in names}
    figures = Figures("wheel")
    for name in names:
        figures.note(KINDS[name].label, "items", count[name], "items", note=KINDS[name].note)
        figures.note(KINDS[name].label, "rate", KINDS[name].rate, "share")

    def keep(name, found):
        for what, value in found.items():
            if isinstance(value, str):
                figures.say(what, value, KINDS[name].label)
            else:
                figures.note(KINDS[name].label, what, value, "items" if what.endswith("lost") else unit(what))

    done = 0
    with tempfile.TemporaryDirectory() as folder:
        Urls(folder).write([items, told * max(LEVELS), *count.values()], max(items, absent))
        keep("set", start("loop", "set", folder, items))
        for turn in range(rounds):
            if time.monotonic() - BEGAN > DEADLINE * 0.75:
                break
            done += 1
            for name in names:
                clock = time.monotonic()
                keep(name, start("speed", name, folder, count[name]))
                path = os.path.join(folder, f"{name}-{turn}")
                keep(name, saved := start("memory", name, folder, count[name], path))
                if "file" in saved:
                    keep(name, start("load", name, folder, count[name], path))
                print(f"round {turn + 1}, {name}: {time.monotonic() - clock:.1f} s", file=sys.stderr)
        # Rates are counted and not timed, so once is enough, and two may run side by side.
        with ThreadPoolExecutor(2) as two:
            slow_first = sorted(names, key=lambda name: count[name])
            for name, found in zip(slow_first, two.map(lambda name: start("overfull", name, folder, told, absent), slow_first)):
                keep(name, {f"overfull, {what}": value for what, value in found.items()})

    urls = [url(number) for number in range(1_000)]
    about = {
        "command": shlex.join(["python", "benches/figures.py", *sys.argv[1:]]),
        "machine": machine(),
        "Python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
        "took": f"{time.monotonic() - BEGAN:.0f} s",
        "rounds": done,
        "items": items,
        "told": told,
        "absent": absent,
        "bytes of a URL": round(sum(map(len, urls)) / len(urls)),
        "versions": ", ".join(
            f"{package} {version(package)}" for package in dict.fromkeys(KINDS[name].package for name in names) if package
        ),
        "left out": ", ".join(missing),
    }
    for what, words in about.items():
        figures.say(what, words)
    figures.write(options.out / "figures.csv")


if __name__ == "__main__":
    main()

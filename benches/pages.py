#!/usr/bin/env python3
"""Writes the figures of the committed CSV files into the tables of the pages; with `--check`, only compares them."""

import re, sys

import kit, tables

PEERS, MODULE = "benches/results/peers/results.csv", "redis/bench/results/results.csv"
PLACES = ["2 MiB, 1 thread", "2 MiB, 2 threads", "128 MiB, 1 thread", "128 MiB, 2 threads"]
SIZES = ["100", "1,000", "10,000", "100,000"]


def each(cell, names):
    return " | ".join(cell.replace("@", f"@{name}") for name in names)


# The page, the first line of its table, the figures, the cells of a line, and the lines: how each begins, the set that it is
# of, and the words for <> in its cells. A cell has figures, `{what}` or `{set: what@place}`, with a form if neither two
# digits nor a whole number will do.
PAGES = [
    (
        "README.md", "| | fill | hit | miss | 90 % lookups, 10 % inserts | delete | bits per item |", PEERS,
        each("{<>fill@} | {<>hit@} | {<>miss@} | {<>mix@} | {<>delete@} | {bits an item@:.1f}", PLACES[3:]),
        [
            ("**koel, in batches**", "koel", "bulk "), ("**koel, one by one**", "koel", ""),
            ("`fastbloom` (no deletion, more than one winner)", "fastbloom", ""),
            ("`bloom-lib`, 64 mutexed shards", "bloom-lib (64 shards)", ""),
            ("`cuckoofilter`, 64 mutexed shards (8 bits, 3 % false)", "cuckoofilter (64 shards)", ""),
            ("`qfilter`, 64 mutexed shards", "qfilter (64 shards)", ""),
            ("`atomic-cuckoo-filter`", "atomic-cuckoo-filter", ""), ("`DashSet` (exact)", "DashSet", ""),
        ],
    ),
    (
        "benches/README.md", "| | 2 MiB, 1 thread | 2 threads | 128 MiB, 1 thread | 2 threads |", PEERS, each("{<>@}", PLACES),
        [
            ("lookup, hit", "koel", "hit"), ("lookup, miss", "koel", "miss"), ("lookups in batches, hit", "koel", "bulk hit"),
            ("lookups in batches, miss", "koel", "bulk miss"), ("`insert`, a whole fill", "koel", "fill"),
            ("`insert`, the last 5 % of it", "koel", "last 5 %"), ("inserts in batches, a whole fill", "koel", "bulk fill"),
            ("`insert_if_absent`, a crawl", "koel", "crawl"), ("90 % lookups, 10 % inserts", "koel", "mix"),
            ("`remove`", "koel", "delete"), ("a removal and an insert, in a full table", "koel", "churn"),
            ("`insert_if_absent`, both threads with the same items at the same time", "koel", "check-and-insert (lockstep)"),
            ("*one random line of the table, prefetched: the limit of the memory*", "(one random line)", "hit"),
        ],
    ),
    (
        "benches/README.md", "| | fill, 2 MiB | hit | miss | fill, 128 MiB | hit | miss | bits per item |",
        "benches/results/peers/partitioned.csv",
        each("{bulk fill@} | {bulk hit@} | {bulk miss@}", ["2 MiB", "128 MiB"]) + " | {bits an item@128 MiB:.1f}",
        [
            ("partitioned, all items in one call", "partitioned", ""), ("koel, in batches", "koel", ""),
            ("koel growing, in batches", "koel (growing)", ""),
        ],
    ),
    (
        "benches/README.md",
        "| | bits per key of the window | a key stays, in ticks | false positives | put if absent | hit | miss | a tick |",
        "benches/results/windows/figures.csv",
        "{bits:.1f} | <> | {found:.4%} | {put:.1f} | {hit:.1f} | {miss:.1f} | {tick} ms",
        [
            ("**koel**", "koel", "7 to 8"), ("**koel, growing**", "koel, growing", "7 to 8"),
            (
                "koel that forgets nothing; somebody who knows all keys removes them",
                "koel, keys removed one by one", "7 to 8",
            ),
            ("`fastbloom`, 2 rotated", "fastbloom, 2 rotated", "7 to 14"), ("`fastbloom`, 3 rotated", "fastbloom, 3 rotated", "8 to 12"),
            ("`fastbloom`, 8 rotated", "fastbloom, 8 rotated", "7 to 8"), ("`cuckoo-clock`", "cuckoo-clock", "7 to 8"),
            ("`DashMap` of time stamps (exact)", "DashMap of time stamps", "7 to 8"),
        ],
    ),
    (
        "src/guide/files.md", "| | fixed filter, 1.0 GiB | growing filter, 1.0 GiB |", "benches/results/snapshots.csv",
        each("{seconds@:.2f} s", ["fixed", "growing"]),
        [
            ("`save`", "save", ""), ("`cp` of the file, synced", "cp, synced", ""), ("`load`, file in the system's cache", "load", ""),
            ("`load`, from disk", "load, from disk", ""), ("reading the file into fresh memory, cached", "read to fresh memory", ""),
            ("the same, from disk", "read to fresh, from disk", ""),
        ],
    ),
    (
        "python/README.md",
        "| | add, ns | present, ns | many: add, present, ns | bytes an item | save, load, ms | ten times as many as told |",
        "python/benches/results/figures.csv",
        "{add if new} | {look up, present} | {add many}, {look up many, present} | {memory} | {save}, {load} | <>",
        [
            ("**pykoel, growing**", "pykoel, growing", "no false positive in a million"),
            ("**pykoel, capacity known**", "pykoel, capacity known", "no false positive in a million"),
            ("**pykoel, growing, kept in a file**", "pykoel, kept in a file", "no false positive in a million"),
            ("`set` of str", "set of str", "exact"), ("Scrapy's RFPDupeFilter", "Scrapy's RFPDupeFilter", "exact"),
            ("`rbloom`", "rbloom", "{overfull, 10 rate:.1%} are false"),
            ("`rbloom` with SHA-256", "rbloom with SHA-256", "{overfull, 10 rate:.1%} are false"),
            ("`fastbloom-rs`", "fastbloom-rs", "{overfull, 10 rate:.1%} are false"),
            ("`pybloom-live`, scalable", "pybloom-live, scalable", "two false positives in a million"),
            ("`cuckoopy`", "cuckoopy", "refuses them, and loses 3 % before"),
        ],
    ),
    (
        "python/README.md", "| | 100 | 1,000 | 10,000 | 100,000 |", "python/benches/results/batches.csv",
        each("{add@}, {look up@}", SIZES),
        [
            ("`pykoel.ray`, two partitions", "pykoel.ray, 2 partitions", ""),
            ("`pykoel.ray`, one partition", "pykoel.ray, 1 partition", ""),
            ("a Python `set` in an actor", "a Python set in an actor", ""),
            ("Redis with koel's module, by redis-py", "Redis with koel's module, everysec", ""),
        ],
    ),
    (
        "redis/README.md", "| | plain keys | koel |", MODULE, "{keys: cpu@<>:.2f} | {koel: cpu@<>:.2f}",
        [
            ("add, one a command (`SET`, `CF.ADD`)", "", "add, 1 a command"),
            ("exists, one a command (`EXISTS`, `CF.EXISTS`)", "", "exists, 1 a command"),
            ("add, 100 a command (`MSET`, `CF.INSERT`)", "", "add, 100 a command"),
            ("exists, 100 a command (`EXISTS`, `CF.MEXISTS`)", "", "exists, 100 a command"),
        ],
    ),
    (
        "redis/README.md", "| | microseconds a command |", MODULE, "{cpu of a command@<>:.2f}",
        [
            ("`PING`", "koel", "PING"), ("`TYPE` of the filter's key, the same server work as for a lookup", "koel", "TYPE"),
            ("`CF.EXISTS` of a key that is not there", "koel", "CF.EXISTS, no such key"),
            ("`CF.EXISTS` in a filter of ten items", "koel", "CF.EXISTS, ten items"),
            ("`CF.EXISTS` in a filter of 1.3 million items", "koel", "CF.EXISTS, all items"),
            ("`EXISTS` among 1.3 million keys", "koel", "EXISTS"),
        ],
    ),
    (
        "redis/README.md", "| | bytes an item | new items taken for seen |", MODULE, "{memory@<>:.1f} | {new items taken for seen@<>:.0f} of a million",
        [
            ("`CF.RESERVE … EXPANSION 0`, 0.01 %", "koel", "koel, fixed, 0.01 %"),
            ("`CF.RESERVE` for ten million, 0.01 %", "koel", "koel, reserved, 0.01 %"),
            ("made for 1,024 items, 0.01 %", "koel", "koel, made small, 0.01 %"),
            ("made for 1,024 items, 0.1 %", "koel", "koel, made small, 0.1 %"),
        ],
    ),
]  # fmt: skip


def cells(figures, owner, template):
    """Cells with their figures."""

    def figure(match):
        name, what, at, form = re.fullmatch(r"(?:(\w+): )?([^@]*?)(?:@(.*?))?(?::(\.\d[f%]))?", match[1]).groups()
        value = figures.value(name or owner, what, at or "")
        if value is None:
            return "–"
        return (f"{value:{form}}" if form else tables.short(value)).replace("%", " %")

    return re.sub(r"\{([^}]*)\}", figure, template)


def made():
    """Each table of a page: its first line, and what follows the second."""
    for page, heading, file, template, lines in PAGES:
        [figures] = kit.read(kit.TOP / file)
        rows = [f"| {label} | {cells(figures, owner, template.replace('<>', words))} |" for label, owner, words in lines]
        yield page, heading, rows
    # The tables of the command lie beside its figures.
    for name, make in {"run": tables.dedup, "files": tables.files, "alone": tables.alone}.items():
        [figures] = kit.read(kit.TOP / f"benches/dedup/{name}.csv")
        for table in re.findall(r"(?m)(?:^\|.*\n)+", make(figures)):
            heading, _, *rows = table.splitlines()
            yield "cli/README.md", heading, rows


def replaced(text, heading, rows):
    """The text of a page with these rows in the place of those of the table with this heading."""
    lines = text.split("\n")
    [first] = [at for at, line in enumerate(lines) if line.split() == heading.split()]
    indent = lines[first][: lines[first].index("|")]
    end = next(at for at in range(first, len(lines)) if not lines[at].strip().startswith("|"))
    return "\n".join([*lines[: first + 2], *(indent + row for row in rows), *lines[end:]])


def main(is_check):
    before, after = {}, {}
    for page, heading, rows in made():
        before.setdefault(page, (kit.TOP / page).read_text())
        after[page] = replaced(after.get(page, before[page]), heading, rows)
    changed = [page for page in after if after[page] != before[page]]
    if is_check and changed:
        sys.exit(f"benches/pages.py makes other tables of {', '.join(changed)}")
    for page in changed:
        (kit.TOP / page).write_text(after[page])


if __name__ == "__main__":
    main("--check" in sys.argv[1:])

#!/usr/bin/env python3
"""Tabulates what figures.py measured: figures.csv of a folder becomes table.md there."""

import csv, pathlib, sys

SINGLE = ["add if new", "look up, present", "look up, absent"]
MANY = {
    "many": {"add": "add many", "present": "look up many, present", "absent": "look up many, absent"},
    "hashes": {"add": "add many hashes", "present": "look up many hashes, present", "absent": "look up many hashes, absent"},
}


class Figures:
    def __init__(self, folder):
        with open(folder / "figures.csv", newline="") as file:
            rows = list(csv.DictReader(file))
        self.about = {row["what"]: row["note"] for row in rows if not row["kind"]}
        self.values = {(row["kind"], row["what"]): float(row["median"]) for row in rows if row["median"]}
        self.notes = {(row["kind"], row["what"]): row["note"] for row in rows if row["note"]}
        self.kinds = [row["kind"] for row in rows if row["what"] == "label"]

    def value(self, kind, what):
        return self.values.get((kind, what))

    def label(self, kind):
        return self.notes[kind, "label"]

    def items(self, kind):
        return int(self.value(kind, "items"))


def number(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def rate_of(figures, value):
    """A counted rate, in words."""
    found, absent = round(value * int(figures.about["absent"])), int(figures.about["absent"])
    if found < 100:
        return f"{found} of {absent:,}"
    return f"{value:.1%}" if value >= 0.001 else f"{value:.3%}"


def lines(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def cell(value, missing="–"):
    return missing if value is None else number(value)


def speed_lines(figures):
    columns = ["add", *SINGLE]
    head = ["one item a call, ns", "items", "add", "add if new", "present", "absent"]
    rows = []
    for kind in figures.kinds:
        rows.append([figures.label(kind), f"{figures.items(kind):,}", *(cell(figures.value(kind, what)) for what in columns)])
    yield from lines(head, rows)
    yield ""
    rows = []
    for kind in figures.kinds:
        for how, columns in MANY.items():
            if figures.value(kind, columns["add"]):
                what = "hashes (uint64)" if how == "hashes" else "list of str"
                rows.append([figures.label(kind), what, *(cell(figures.value(kind, column)) for column in columns.values())])
    yield from lines(["many items a call, ns an item", "given", "add", "present", "absent"], rows)


def memory_lines(figures):
    rows = []
    for kind in figures.kinds:
        rate = figures.value(kind, "rate")
        note = figures.notes.get((kind, "items"), "")
        file, lost = figures.value(kind, "file"), figures.value(kind, "lost")
        if lost:
            note += f"; {lost:,.0f} of {figures.items(kind):,} items were not found again"
        if now := figures.value(kind, "rate at the end"):
            note += f"; its own estimate of its rate at the end is {now:.0e}".replace("e-0", "e-")
        if (kind, "says") in figures.notes:
            note += f" ({figures.notes[kind, 'says'].split(':')[0]})"
        rows.append([
            figures.label(kind), f"{figures.items(kind):,}", f"{rate:.0e}".replace("e-0", "e-") if rate else "0",
            cell(figures.value(kind, "memory")), cell(figures.value(kind, "memory, peak")), cell(file),
            cell(figures.value(kind, "save")), cell(figures.value(kind, "load")), note or " ",
        ])  # fmt: skip
    head = ["", "items", "rate asked for", "memory, bytes an item", "at most meanwhile", "file, bytes an item", "save, ms", "load, ms", ""]
    yield from lines(head, rows)


def overfull_lines(figures):
    rows = []
    for kind in figures.kinds:
        row = [figures.label(kind)]
        for level in [1, 2, 10]:
            value = figures.value(kind, f"overfull, {level} rate")
            words = "–" if value is None else rate_of(figures, value)
            if says := figures.notes.get((kind, f"overfull, {level} says")):
                words = f"{says} ({words})"
            if lost := figures.value(kind, f"overfull, {level} lost"):
                words += f"; {lost:,.0f} items lost"
            row.append(words)
        rows.append(row)
    told = int(figures.about["told"])
    yield from lines(["", *(f"after {told * level:,}" for level in [1, 2, 10])], rows)


def trouble(figures):
    """What a measurement said that no table has a place for."""
    for (kind, what), note in figures.notes.items():
        if kind and what == "failed":
            yield f"* {figures.label(kind)}: {note}"
        if kind and what == "overfull, failed":
            yield f"* {figures.label(kind)}, overfull: {note}"
    for (kind, what), value in figures.values.items():
        if what.startswith("lost: "):
            yield f"* {figures.label(kind)}, {what[6:]}: {value:,.0f} of {figures.items(kind):,} items were not found"
        if what.startswith("wrong: "):
            yield f"* {figures.label(kind)}, {what[7:]}: {value:,.0f} false positives of {figures.items(kind):,}"


def table(figures, path):
    about = figures.about
    left_out = f" Not installed, and left out: {about['left out']}." if about["left out"] else ""
    loop = figures.value("set", "loop")
    parts = [
        "# pykoel beside its peers",
        "",
        f"`{about['command']}` in `python/`, {about['date']}, Python {about['Python']}, {about['machine']};",
        f"{about['versions']}.{left_out}",
        "",
        f"Medians of {about['rounds']} rounds. Other work ran on the machine now and then, so ratios within this run mean more",
        "than absolute figures. [How it is measured](../README.md).",
        "",
        "## Speed",
        "",
        f"CPU time of URLs of some {about['bytes of a URL']} bytes, or of fingerprints that were made before. The loop is in the",
        "figures of one item a call"
        + (f", and takes {loop:.0f} ns itself." if loop else ".")
        + " Slow kinds were given fewer items.",
        "",
        "![Speed](speed.svg)",
        "",
        *speed_lines(figures),
        "",
        "## Memory and files",
        "",
        "How much the process grew. A set keeps its strings alive, which are in the figure. Files are written to and",
        "read from the page cache; loads are in a new process, which then looks for all items.",
        "",
        "![Memory](memory.svg)",
        "",
        *memory_lines(figures),
        "",
        "## More items than planned",
        "",
        f"Filters that were made for {int(about['told']):,} items, and the false positives among {int(about['absent']):,} absent ones.",
        "All that was added is then looked for. *pykoel, growing* and the sets were told nothing. cuckoopy is told buckets:",
        "it has the power of two that holds the items at a load of at most 95%. With more buckets it loses fewer items.",
        "",
        "![Overfull](overfull.svg)",
        "",
        *overfull_lines(figures),
    ]
    if said := list(trouble(figures)):
        parts += ["", "## What went wrong", "", *said]
    path.write_text("\n".join(parts) + "\n")


def main(folder):
    table(Figures(folder), folder / "table.md")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "results")

#!/usr/bin/env python3
"""Draws what figures.py measured: figures.csv of a folder becomes table.md and three plots there."""

import csv, json, pathlib, subprocess, sys

KOEL, PEER = "#d1495b", "#30638e"
# Of the workspace that has the program that draws.
WORKSPACE = pathlib.Path(__file__).parents[2] / "Cargo.toml"

SINGLE = {"add if new": "add, and tell whether it was new", "look up, present": "look up, present", "look up, absent": "look up, absent"}
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
        self.spreads = {(row["kind"], row["what"]): (float(row["least"]), float(row["most"])) for row in rows if row["least"]}
        self.notes = {(row["kind"], row["what"]): row["note"] for row in rows if row["note"]}
        self.kinds = [row["kind"] for row in rows if row["what"] == "label"]

    def value(self, kind, what):
        return self.values.get((kind, what))

    def label(self, kind):
        return self.notes[kind, "label"]

    def items(self, kind):
        return int(self.value(kind, "items"))

    def noted(self, kind):
        """Its name, and for how many items its figures are if not for all."""
        items = self.items(kind)
        few = f" ({items // 1000}k)" if items < int(self.about["items"]) else ""
        return self.label(kind) + few


def number(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def bar(kind, value, label, spread=(None, None)):
    low, high = spread
    return {"value": value, "low": low, "high": high, "label": label, "colour": KOEL if kind.startswith("pykoel") else PEER}


def draw(path, title, *blocks, about=()):
    """Draws blocks of bars, one below the other."""
    plot = {"title": title, "about": about, "width": 1040, "rows": [{"bars": block} for block in blocks]}
    command = ["cargo", "run", "--quiet", "--locked", "--manifest-path", WORKSPACE, "-p", "koel-plot", "--", path]
    subprocess.run(command, input=json.dumps(plot), text=True, check=True)


def speed(figures, path):
    # A scale for the fast ones: pure Python is torn off.
    most = 2.2 * max((figures.value(kind, "add if new") or 0 for kind in figures.kinds if kind.startswith("pykoel")), default=500)

    def cell(kind, what, missing):
        value = figures.value(kind, what)
        return [bar(kind, value, number(value) if value else missing, figures.spreads.get((kind, what), (None, None)))]

    single = [
        {"name": figures.noted(kind), "cells": [cell(kind, what, "failed") for what in SINGLE]} for kind in figures.kinds
    ]
    many = [
        {
            "name": figures.label(kind) + (", hashes" if how == "hashes" else ""),
            "cells": [cell(kind, what, "no such call") for what in columns.values()],
        }
        for kind in figures.kinds
        for how, columns in MANY.items()
        if figures.value(kind, columns["add"])
    ]
    draw(
        path,
        f"CPU time, nanoseconds an item, of {int(figures.about['items']):,} URLs",
        {"title": "One item a call", "columns": list(SINGLE.values()), "high": most, "rows": single},
        {
            "title": "Many items a call: lists of str, and buffers of hashes",
            "columns": ["add many", "look up many, present", "look up many, absent"],
            "high": most,
            "rows": many,
        },
        about=[f"Medians, and the least and the most of {figures.about['rounds']} rounds"],
    )


def memory(figures, path):
    def cell(kind, what):
        value, lost = figures.value(kind, what), figures.value(kind, "lost")
        if what != "memory" and lost:
            value = None
        if what == "load" and value:
            value *= 1e6 / figures.items(kind)
        missing = "not found again" if lost else "cannot be saved"
        return [bar(kind, value, missing if value is None else number(value))]

    titles = {"memory": "memory, bytes an item", "file": "file, bytes an item", "load": "load the file, ns an item"}
    rows = [{"name": figures.noted(kind), "cells": [cell(kind, what) for what in titles]} for kind in figures.kinds]
    title = "Memory and files, of filters asked for one false positive in a million"
    draw(path, title, {"columns": list(titles.values()), "rows": rows})


def rate_of(figures, value):
    """A counted rate, in words."""
    found, absent = round(value * int(figures.about["absent"])), int(figures.about["absent"])
    if found < 100:
        return f"{found} of {absent:,}"
    return f"{value:.1%}" if value >= 0.001 else f"{value:.3%}"


def overfull(figures, path):
    told, levels = int(figures.about["told"]), [1, 2, 10]

    def cell(kind, level):
        value = figures.value(kind, f"overfull, {level} rate")
        says = figures.notes.get((kind, f"overfull, {level} says"))
        lost = figures.value(kind, f"overfull, {level} lost")
        if value is None or says:
            return [bar(kind, None, "refused more" if says or level > 1 else "failed")]
        return [bar(kind, value, rate_of(figures, value) + (f", {lost:,.0f} lost" if lost else ""))]

    rows = [{"name": figures.label(kind), "cells": [cell(kind, level) for level in levels]} for kind in figures.kinds]
    columns = [f"after {told * level:,} items" for level in levels]
    title = f"False positives of filters that were made for {told:,} items (log scale)"
    block = {"columns": columns, "low": 1e-7, "high": 1, "rows": rows}
    draw(path, title, block, about=["pykoel, growing and the sets were told nothing"])


# The table.


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
    figures = Figures(folder)
    speed(figures, folder / "speed.svg")
    memory(figures, folder / "memory.svg")
    overfull(figures, folder / "overfull.svg")
    table(figures, folder / "table.md")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "results")

#!/usr/bin/env python3
"""Draws what figures.py measured: figures.csv of a folder becomes table.md and three plots there."""

import csv, math, pathlib, sys

KOEL, PEER, PALE = "#d1495b", "#30638e", "#c9d6e2"
LABEL, PANEL, GAP, ROW, MARGIN = 230, 235, 18, 24, 16
WIDTH = MARGIN + LABEL + 3 * (PANEL + GAP)
ROOM = 92  # Right of the longest bar, for its number.

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


def text(x, y, what, anchor="start", weight="normal", fill="#222"):
    what = what.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-weight="{weight}" fill="{fill}">{what}</text>'


def box(x, y, width, height, fill):
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" fill="{fill}"/>'


def panel_at(number):
    return MARGIN + LABEL + number * (PANEL + GAP)


def color(kind):
    return KOEL if kind.startswith("pykoel") else PEER


def names(rows, y):
    return [text(MARGIN + LABEL - 10, y + at * ROW + 13, name, "end") for at, name in enumerate(rows)]


def bar(at, y, value, most, fill, label):
    """A bar, or a torn one if it is longer than the panel."""
    x, room = panel_at(at), PANEL - ROOM
    if value is None:
        return [text(x, y + 13, label, fill="#777")]
    width = min(room, max(1, value / most * room))
    drawn = [box(x, y, width, 16, fill)]
    if value > most:
        torn = f"{x + width - 22:.1f},{y - 1} l7,9 l-7,9 l6,0 l7,-9 l-7,-9 z"
        drawn.append(f'<path d="M{torn}" fill="white"/>')
    return drawn + [text(x + width + 6, y + 13, label)]


def write(path, drawn, height):
    style = "<style>text{font:13px sans-serif}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">'
    path.write_text("\n".join([head, style, box(0, 0, WIDTH, height, "white"), *drawn, "</svg>"]) + "\n")


def speed(figures, path):
    items = int(figures.about["items"])
    drawn = [text(MARGIN, 26, f"CPU time, nanoseconds an item, of {items:,} URLs: one item a call", weight="bold")]
    y, kinds = 74, figures.kinds
    # A scale for the fast ones: pure Python is torn off.
    most = 2.2 * max((figures.value(kind, "add if new") or 0 for kind in kinds if kind.startswith("pykoel")), default=500)
    for at, (what, title) in enumerate(SINGLE.items()):
        drawn.append(text(panel_at(at), y - 14, title, weight="bold"))
        for row, kind in enumerate(kinds):
            value = figures.value(kind, what)
            drawn += bar(at, y + row * ROW, value, most, color(kind), number(value) if value else "failed")
    drawn += names(map(figures.noted, kinds), y)
    y += len(kinds) * ROW + 40
    drawn.append(text(MARGIN, y, "The same, many items a call: lists of str, and buffers of hashes", weight="bold"))
    y += 48
    rows = [(kind, how) for kind in kinds for how in MANY if figures.value(kind, MANY[how]["add"])]
    for at, title in enumerate(["add", "present", "absent"]):
        drawn.append(text(panel_at(at), y - 14, "add many" if title == "add" else f"look up many, {title}", weight="bold"))
        for row, (kind, how) in enumerate(rows):
            value = figures.value(kind, MANY[how][title])
            drawn += bar(at, y + row * ROW, value, most, color(kind), number(value) if value else "no such call")
    drawn += names([figures.label(kind) + (", hashes" if how == "hashes" else "") for kind, how in rows], y)
    write(path, drawn, y + len(rows) * ROW + 16)


def memory(figures, path):
    drawn = [text(MARGIN, 26, "Memory and files, of filters asked for one false positive in a million", weight="bold")]
    y, kinds = 74, figures.kinds

    def value_of(kind, what):
        value = figures.value(kind, what)
        if what != "memory" and figures.value(kind, "lost"):
            return None
        return value * 1e6 / figures.items(kind) if what == "load" and value else value

    titles = {"memory": "memory, bytes an item", "file": "file, bytes an item", "load": "load the file, ns an item"}
    for at, (what, title) in enumerate(titles.items()):
        drawn.append(text(panel_at(at), y - 14, title, weight="bold"))
        most = max(value_of(kind, what) or 0 for kind in kinds)
        for row, kind in enumerate(kinds):
            value = value_of(kind, what)
            missing = "not found again" if figures.value(kind, "lost") else "cannot be saved"
            drawn += bar(at, y + row * ROW, value, most, color(kind), missing if value is None else number(value))
    drawn += names(map(figures.noted, kinds), y)
    write(path, drawn, y + len(kinds) * ROW + 16)


def rate_of(figures, value):
    """A counted rate, in words."""
    found, absent = round(value * int(figures.about["absent"])), int(figures.about["absent"])
    if found < 100:
        return f"{found} of {absent:,}"
    return f"{value:.1%}" if value >= 0.001 else f"{value:.3%}"


def overfull(figures, path):
    told = int(figures.about["told"])
    drawn = [
        text(MARGIN, 26, f"False positives of filters that were made for {told:,} items (log scale)", weight="bold"),
        text(MARGIN, 46, "pykoel, growing and the sets were told nothing", fill="#777"),
    ]
    y, kinds = 92, figures.kinds
    lowest, room = -7, PANEL - ROOM - 34
    for at, level in enumerate([1, 2, 10]):
        drawn.append(text(panel_at(at), y - 14, f"after {told * level:,} items", weight="bold"))
        for row, kind in enumerate(kinds):
            x, top = panel_at(at), y + row * ROW
            value = figures.value(kind, f"overfull, {level} rate")
            says = figures.notes.get((kind, f"overfull, {level} says"))
            lost = figures.value(kind, f"overfull, {level} lost")
            if value is None or says:
                words = "refused more" if says or at else "failed"
                drawn.append(text(x, top + 13, words, fill="#777"))
                continue
            width = 0 if value == 0 else max(2, (math.log10(value) - lowest) / -lowest * room)
            label = rate_of(figures, value) + (f", {lost:,.0f} lost" if lost else "")
            drawn += [box(x, top, width, 16, color(kind)), text(x + width + 6, top + 13, label)]
    drawn += names(map(figures.label, kinds), y)
    write(path, drawn, y + len(kinds) * ROW + 16)


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

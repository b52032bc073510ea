#!/usr/bin/env python3
"""Draws the committed pictures from the committed figures: all of them, or those of the folders that are named.

A picture lies beside its CSV file, whose columns say which picture it is.
"""

import csv, io, math, pathlib, re, sys

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

TOP = pathlib.Path(__file__).parents[1]
INK, FAINT, GRID, KOEL, OTHER = "#222222", "#666666", "#e8e8e8", "#d62f0e", "#4c78a8"
matplotlib.use("svg")
matplotlib.rcParams.update({
    "svg.fonttype": "none", "svg.hashsalt": "koel", "font.family": ["DejaVu Sans", "sans-serif"], "font.size": 9,
    "axes.titlesize": 10, "axes.titleweight": "bold", "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": FAINT,
    "axes.labelcolor": INK, "text.color": INK, "xtick.color": FAINT, "ytick.color": FAINT, "grid.color": GRID,
    "legend.frameon": False, "lines.markersize": 4.5, "figure.constrained_layout.use": True,
})  # fmt: skip


def save(figure, path, title, about="", legend=(), columns=5):
    figure.suptitle(title, x=0.01, ha="left", fontsize=13, weight="bold")
    figure.legend(handles=legend, title=about, loc="outside lower left", ncols=columns, alignment="left")
    svg = io.StringIO()
    figure.savefig(svg, metadata={"Date": None}, bbox_inches="tight", pad_inches=0.15)
    # A path on one line.
    path.write_text(re.sub(r" ?\n(?=[^ <])", " ", svg.getvalue()))
    pyplot.close(figure)


def short(figure):
    return f"{figure:,.0f}" if figure >= 10 else f"{figure:.1f}"


# Curves.


def style(peer):
    """koel stands out; the others have one colour each, with any lock."""
    looks = {
        "koel": (KOEL, "o"), "fastbloom": (OTHER, "s"), "atomic-cuckoo-filter": ("#3f9c7a", "^"),
        "cuckoo-clock": ("#9ab84a", "o"), "DashSet": ("#7a7a7a", "D"), "cuckoofilter": ("#b279a2", "s"),
        "autoscale_cuckoo_filter": ("#c9a227", "^"), "bloom-lib": ("#6fb7c9", "D"), "(one": (INK, ""),
        "koel (growing)": ("#e9a08f", "s"), "koel made for n items": ("#e9a08f", "s"), "koel, growing": (KOEL, ""),
        "fastbloom, 2 rotated": (OTHER, ""), "fastbloom, 3 rotated": ("#3f9c7a", ""),
        "fastbloom, 8 rotated": ("#c9a227", ""), "DashMap of time stamps": ("#8a8a8a", ""),
    }  # fmt: skip
    colour, marker = looks.get(peer) or looks.get(peer.split(" ")[0], ("#8f6b52", "o"))
    dashed = "(mutex)" in peer or peer.startswith("(one")
    width = 2.6 if peer in ("koel", "koel, growing") else 1.3
    return {"color": colour, "marker": marker, "linewidth": width, "linestyle": "--" if dashed else "-"}


def axes(axis, title, x, y, log=(False, False), named=None, steps=(1, 2, 5)):
    """Labels two axes, which are logarithmic or not; `named` are the ticks of x, with their names."""
    x, y = (name + ", log scale" * bool(is_log and name) for name, is_log in zip((x, y), log))
    axis.set(title=title, xlabel=x, ylabel=y, xscale="log" if log[0] else "linear", yscale="log" if log[1] else "linear")
    axis.grid(axis="y")
    for which in [axis.xaxis, axis.yaxis][0 if log[0] else 1 : 2 if log[1] else 1]:
        which.set_major_locator(LogLocator(subs=steps))
        which.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        which.set_minor_locator(NullLocator())
    if named:
        axis.set_xticks(list(named), list(named.values()), minor=False)


def curve(axis, points, **look):
    """Draws points (x, y), and hollow those of which a third entry is true. Returns the curve."""
    points = sorted(point for point in points if point[1] > 0)
    (line,) = axis.plot([point[0] for point in points], [point[1] for point in points], **look)
    hollow = [point for point in points if point[2:] == (True,)]
    if hollow:
        edge = {"markerfacecolor": "white", "color": look["color"], "marker": look["marker"], "linestyle": "", "zorder": 3}
        axis.plot([point[0] for point in hollow], [point[1] for point in hollow], **edge)
    return line


def distinct(rows, column):
    return list(dict.fromkeys(row[column] for row in rows))


def peers(rows, folder):
    """Throughput by table size, and by threads at each size."""
    charts = {
        "hit": "hit", "miss": "miss", "fill": "fill", "crawl": "crawl: check-and-insert, own streams",
        "check-and-insert (lockstep)": "check-and-insert, all threads in lockstep", "mix": "mix: nine lookups to one insert",
    }  # fmt: skip
    bits = {(row["peer"], row["size"], row["threads"]): float(row["bits_per_item"]) for row in rows}
    rows = [row for row in rows if "(mutex)" not in row["peer"] or row["peer"] == "bloom-lib (mutex)"]

    def label(peer, rows):
        some = sorted({f"{bits[peer, row['size'], row['threads']]:.0f}" for row in rows if row["peer"] == peer}, key=int)
        return (
            "limit of the memory: one random line a lookup"
            if peer.startswith("(")
            else f"{peer}: {'–'.join(dict.fromkeys([some[0], some[-1]]))} bits"
        )

    def draw(path, title, rows, x, label_of_x, names):
        figure, panels = pyplot.subplots(2, 3, figsize=(12, 7.6))
        for panel, (workload, heading) in zip(panels.flat, charts.items()):
            axes(panel, heading, label_of_x, "million operations / s", (True, True), names)
            legend = {}
            for peer in [*distinct(rows, "peer")[::-1], "in batches"]:
                of, which = ("koel", f"bulk {workload}") if peer == "in batches" else (peer, workload)
                points = [
                    (int(row[x]), float(row["median"]), bits[of, row["size"], row["threads"]] > 1.3 * bits["koel", row["size"], row["threads"]])
                    for row in rows if (row["peer"], row["workload"]) == (of, which)
                ]  # fmt: skip
                look = style(of) | ({"linestyle": "--", "linewidth": 1.8} if of != peer else {})
                legend[peer] = curve(panel, points, label="koel, in batches" if of != peer else label(peer, rows), **look)
        entries = [legend[peer] for peer in [*distinct(rows, "peer"), "in batches"]]
        note = "Bits are per item. A hollow mark: this table takes more than 1.3 times the memory of koel's."
        save(figure, path, title, note, entries, 3)

    sizes, threads = ({int(row[column]) for row in rows} for column in ("size", "threads"))
    named = {size: f"{size >> 20} MiB" if size >> 20 else f"{size >> 10} KiB" for size in sorted(sizes)}
    for size, name in named.items():
        title = f"Throughput by threads, {name} of 16-bit fingerprints at 94 % load"
        some = [row for row in rows if row["size"] == str(size)]
        draw(
            folder / f"threads-{name.replace(' ', '')}.svg", title, some, "threads", "threads", {n: str(n) for n in sorted(threads)}
        )
    two = min(threads - {1}, default=1)
    some = [row for row in rows if row["threads"] == str(two)]
    draw(
        folder / "sizes.svg",
        f"Throughput by table size, {two} threads, 94 % load",
        some,
        "size",
        "table size (16-bit fingerprints)",
        named,
    )


def growing(rows, panels, figures):
    """Draws, of sets that grow, a curve of each in each panel, and returns the legend."""
    powers = sorted({int(row["items"]) for row in rows if math.log2(int(row["items"])).is_integer()})
    named = {items: f"{items >> 20}M" if items >> 20 else f"{items >> 10}k" for items in powers}
    legend = []
    for peer in distinct(rows, "peer")[::-1]:
        # The curves of the two chains mostly cover each other.
        wide = {"linewidth": 3.5, "color": "#e5cb80", "zorder": 1} if peer.startswith("autoscale") else {}
        for panel, figure, more in figures:
            axes(panels[panel][0], panels[panel][1], "items (k = 1024, M = 1024k)", panels[panel][2], (True, True), named)
            points = [(int(row["items"]), figure(row)) for row in rows if row["peer"] == peer]
            line = curve(panels[panel][0], points, label="koel, growing" if peer == "koel" else peer, **style(peer) | wide | more)
        legend.append(line)
    return legend[::-1]


def lookups(rows, folder):
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.6))
    panels = [(left, "Lookups: hits, and misses (dashed)", "million lookups / s"), (right, "False positives", "percent")]
    figures = [
        (0, lambda row: float(row["miss"]), {"linestyle": "--", "marker": ""}), (0, lambda row: float(row["hit"]), {}),
        (1, lambda row: 100 * float(row["false_positive_rate"]), {}),
    ]  # fmt: skip
    save(figure, folder / "lookups.svg", "Sets that grow, one thread: at each doubling", legend=growing(rows, panels, figures))


def memory(rows, folder):
    figure, panel = pyplot.subplots(figsize=(12, 5))
    bytes_per_item = lambda row: int(row["bytes"]) / int(row["items"])
    legend = growing(rows, [(panel, "", "bytes per item")], [(0, bytes_per_item, {"marker": ""})])
    save(figure, folder / "memory.svg", "Memory of sets that grow, by items so far", legend=legend)


def windows(rows, folder):
    figure, panels = pyplot.subplots(3, 1, figsize=(10, 7.6))
    titles = [("keys of the window", "million"), ("memory", "MB"), ("false positives (0.012 % was asked for)", "percent")]
    named = {window: str(window) for window in range(0, 22, 2)}
    for at, (panel, (title, unit)) in enumerate(zip(panels, titles)):
        axes(panel, title, "windows", unit, (False, at == 2), named, (1,))
    legend = []
    for peer in distinct(rows, "peer")[::-1]:
        some = [((int(row["tick"]) + 1) / 7, row) for row in rows if row["peer"] == peer]
        legend.append(curve(panels[1], [(x, int(row["bytes"]) / 1e6) for x, row in some], label=peer, **style(peer)))
        # An exact set has none, and a sample may have none.
        rates = [(x, 100 * max(float(row["false_positive_rate"]), 1e-5)) for x, row in some]
        if max(rate for _, rate in rates) > 1e-3:
            curve(panels[2], rates, **style(peer))
    curve(panels[0], [(x, int(row["items"]) / 1e6) for x, row in some], color=INK, marker="", linewidth=1.6)
    note = "At the end of each tick, a seventh of a window. Keys stay for 7 to 8 ticks in koel and in 8 Blooms, 8 to 12 in 3, 7 to 14 in 2."
    save(figure, folder / "window.svg", "Twenty windows, of which the tenth has ten times as many keys", note, legend[::-1], 5)


# Bars.


def bars(path, title, blocks, about="", legend=None, log=False):
    """Draws blocks of rows: (title, titles of columns, rows, the greatest value that is drawn or None).

    A row is a name and its cells, a cell has bars, and a bar is (value, least, most, label, colour), or a dot on a
    logarithmic scale. All cells of a column have one scale. A bar without a value is its label.
    """
    columns = max(len(block[1]) for block in blocks)
    heights = [sum(max(map(len, cells)) + 0.35 for _, cells in rows) for _, _, rows, _ in blocks]
    inches = sum(heights) * 0.18 + len(blocks) * (0.75 if columns > 1 else 0.5) + 0.8
    figure, panels = pyplot.subplots(len(blocks), columns, figsize=(10.4, inches), height_ratios=heights, squeeze=False)
    values = [
        value for _, _, rows, _ in blocks for _, cells in rows for cell in cells for bar in cell for value in bar[:3] if value
    ]
    for (heading, titles, rows, greatest), across, height in zip(blocks, panels, heights):
        for column, (panel, under) in enumerate(zip(across, titles)):
            panel.set_title("\n".join(filter(None, [heading if column == 0 else " " * bool(heading), under])))
            panel.spines[["left", "bottom"]].set_visible(False)
            drawn = [bar for _, cells in rows for bar in cells[column] if bar[0]]
            most = greatest or max((max(bar[0], bar[2] or 0) for bar in drawn), default=1)
            least = min(values) / 2 if log else 0
            most = max(values) if log else most
            panel.set(
                xscale="log" if log else "linear",
                xlim=(least, most * (most / least) ** 0.25 if log else most * 1.3),
                ylim=(height, 0),
            )
            y, places = 0.0, []
            for _, cells in rows:
                lines = max(map(len, cells))
                places.append(y + lines / 2)
                for line, (value, low, high, label, colour) in enumerate(cells[column]):
                    at, end = y + line + 0.5, least
                    if value:
                        end = min(value, most)
                        if log:
                            # The length of a bar would depend on where the scale begins.
                            panel.plot(value, at, "o", color=colour, markersize=6)
                        else:
                            panel.barh(at, end - least, left=least, height=0.8, color=colour)
                        if value > most:
                            panel.text(end * 0.93, at, "//", color="white", ha="center", va="center", weight="bold")
                        elif low:
                            panel.errorbar(
                                value, at, xerr=[[value - low], [min(high, most) - value]], color=INK, capsize=2, linewidth=0.8
                            )
                            end = max(end, min(high, most))
                    panel.annotate(
                        label, (end, at), (7 if log else 4, 0), textcoords="offset points", va="center", color=FAINT if value is None else INK
                    )
                y += lines + 0.35
            panel.set_xticks([], minor=False)
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_yticks(places, [name for name, _ in rows] if column == 0 else [""] * len(rows))
            panel.tick_params(axis="y", length=0, labelcolor=INK)
    entries = [pyplot.Rectangle((0, 0), 1, 1, color=colour, label=name) for name, colour in (legend or {}).items()]
    save(figure, path, title, about, entries)


def number(row, column):
    return float(row[column]) if row[column] else None


def durable(rows, folder):
    colours = {"koel": KOEL, "SQLite": OTHER, "fjall": "#3f9c7a", "Redis": "#8a6bb8", "Scrapy": "#c9a227"}
    rows = [row for row in rows if row["figure"] == "add"]

    def line(row):
        value = number(row, "median")
        label = f"{value / 1e6:.3g} M" if value >= 1e6 else f"{value / 1e3:.3g} k"
        colour = next(colour for name, colour in colours.items() if row["set"].startswith(name))
        return row["set"], [[(value, number(row, "least"), number(row, "most"), label, colour)]]

    blocks = [(group, [""], [line(row) for row in rows if row["group"] == group], None) for group in distinct(rows, "group")]
    about = "On a logarithmic scale: equal distances are equal factors. A line reaches from the slowest round to the fastest."
    bars(folder / "adds.svg", "New items a second, into sets that outlive their process", blocks, about, colours, log=True)


def module(rows, folder):
    kinds = {
        "keys": ("plain keys (SET, EXISTS, MSET)", "#9aa5b1"),
        "koel": ("koel (CF.*)", KOEL),
        "bloom": ("RedisBloom (CF.*)", OTHER),
    }
    titles = {
        "cpu": "CPU time of the server's main thread, microseconds an item", "memory, resident": "memory that the server took, bytes an item",
        "ten items, beyond an empty key": "a set of ten items, bytes beyond an empty key",
    }  # fmt: skip
    blocks = []
    for what, title in titles.items():
        some = [row for row in rows if row["what"] == what]
        bar = lambda row: (
            number(row, "value"),
            number(row, "least"),
            number(row, "most"),
            f"{number(row, 'value'):.3g}",
            kinds[row["kind"]][1],
        )
        blocks.append((title, [""], [(of, [[bar(row) for row in some if row["of"] == of]]) for of in distinct(some, "of")], None))
    legend = dict(kinds[kind] for kind in distinct(rows, "kind"))
    about = "A line reaches from the least that was measured to the most."
    bars(folder / "results.svg", "The module of koel beside plain keys", [block for block in blocks if block[2]], about, legend)


def wheel(rows, folder):
    """pykoel beside its peers: speed, memory, and more items than planned."""
    about = {row["what"]: row["note"] for row in rows if not row["kind"]}
    found = {(row["kind"], row["what"]): row for row in rows if row["kind"]}
    kinds = [row["kind"] for row in rows if row["what"] == "label"]
    value = lambda kind, what: number(found[kind, what], "median") if (kind, what) in found else None
    label = lambda kind: found[kind, "label"]["note"]
    items = lambda kind: int(value(kind, "items"))
    noted = lambda kind: label(kind) + (f" ({items(kind) // 1000}k)" if items(kind) < int(about["items"]) else "")

    def cell(kind, what, missing):
        colour = KOEL if kind.startswith("pykoel") else OTHER
        row = found.get((kind, what))
        if not row or not row["median"]:
            return [(None, None, None, missing, colour)]
        return [(number(row, "median"), number(row, "least"), number(row, "most"), short(number(row, "median")), colour)]

    one = {
        "add if new": "add, and tell whether it was new",
        "look up, present": "look up, present",
        "look up, absent": "look up, absent",
    }
    many = [(kind, how) for kind in kinds for how in ("many", "many hashes") if value(kind, f"add {how}")]
    columns = ["add {}", "look up {}, present", "look up {}, absent"]
    most = 2.2 * max((value(kind, "add if new") or 0 for kind in kinds if kind.startswith("pykoel")), default=500)
    # A scale for the fast ones: pure Python is torn off.
    blocks = [
        ("One item a call", list(one.values()), [(noted(kind), [cell(kind, what, "failed") for what in one]) for kind in kinds], most),
        (
            "Many items a call: lists of str, and buffers of hashes", [column.format("many") for column in columns],
            [(label(kind) + ", hashes" * (how != "many"), [cell(kind, column.format(how), "no such call") for column in columns]) for kind, how in many],
            most,
        ),
    ]  # fmt: skip
    title = f"CPU time, nanoseconds an item, of {int(about['items']):,} URLs"
    bars(folder / "speed.svg", title, blocks, f"Medians, and the least and the most of {about['rounds']} rounds.")

    def room(kind, what):
        lost = value(kind, "lost")
        ((got, _, _, words, colour),) = cell(kind, what, "cannot be saved")
        if what != "memory" and lost:
            return [(None, None, None, "not found again", colour)]
        got = got * 1e6 / items(kind) if what == "load" and got else got
        return [(got, None, None, short(got) if got else words, colour)]

    titles = {"memory": "memory, bytes an item", "file": "file, bytes an item", "load": "load the file, ns an item"}
    lines = [(noted(kind), [room(kind, what) for what in titles]) for kind in kinds]
    title = "Memory and files, of filters asked for one false positive in a million"
    bars(folder / "memory.svg", title, [("", list(titles.values()), lines, None)])

    def full(kind, level):
        ((rate, _, _, _, colour),) = cell(kind, f"overfull, {level} rate", "")
        lost, absent = value(kind, f"overfull, {level} lost"), int(about["absent"])
        if rate is None or (kind, f"overfull, {level} says") in found:
            return [(None, None, None, "refused more" if level > 1 or rate is not None else "failed", colour)]
        words = (
            f"{round(rate * absent)} of {absent:,}"
            if round(rate * absent) < 100
            else f"{rate:.1%}" if rate >= 0.001 else f"{rate:.3%}"
        )
        return [(rate, None, None, words + (f", {lost:,.0f} lost" if lost else ""), colour)]

    told, levels = int(about["told"]), (1, 2, 10)
    lines = [(label(kind), [full(kind, level) for level in levels]) for kind in kinds]
    title = f"False positives of filters that were made for {told:,} items (log scale)"
    block = ("", [f"after {told * level:,} items" for level in levels], lines, None)
    bars(folder / "overfull.svg", title, [block], "pykoel, growing and the sets were told nothing.", log=True)


PICTURES = {
    "peer,workload,size,threads": peers, "peer,items,fill": lookups, "peer,items,bytes": memory, "peer,tick,items": windows,
    "group,set,figure": durable, "what,of,kind": module, "kind,what,median": wheel,
}  # fmt: skip


def main(folders):
    files = [file for folder in folders for file in sorted(folder.glob("*.csv"))]
    for file in files:
        lines = [line for line in file.read_text().splitlines() if not line.startswith("# ")]
        for columns, draw in PICTURES.items():
            if lines[0].startswith(columns):
                draw(list(csv.DictReader(lines)), file.parent)
    if not files:
        sys.exit("no CSV files in " + ", ".join(map(str, folders)))


if __name__ == "__main__":
    committed = [*(TOP / "benches/results").iterdir(), TOP / "python/benches/results", TOP / "redis/bench/results"]
    main([pathlib.Path(name) for name in sys.argv[1:]] or [folder for folder in committed if folder.is_dir()])

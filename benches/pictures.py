"""The pictures of the figures: what `draw.py` draws beside the CSV files."""

import io, math, re

import matplotlib
from matplotlib import pyplot
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from kit import distinct
from tables import counted

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
    # A path on one line, and areas by number: their names depend on the last bit of where they are.
    drawn = re.sub(r" ?\n(?=[^ <])", " ", svg.getvalue())
    areas = {name: f"area{number}" for number, name in enumerate(re.findall(r'<clipPath id="(\w+)"', drawn))}
    path.write_text(re.sub(r"\bp[0-9a-f]{10}\b", lambda found: areas.get(found[0], found[0]), drawn))
    pyplot.close(figure)


def short(figure):
    return f"{figure:,.0f}" if figure >= 10 else f"{figure:.1f}"


# Curves.


def style(peer):
    """koel stands out; the others have one colour each."""
    looks = {
        "koel": (KOEL, "o"), "fastbloom": (OTHER, "s"), "atomic-cuckoo-filter": ("#3f9c7a", "^"),
        "cuckoo-clock": ("#9ab84a", "o"), "DashSet": ("#7a7a7a", "D"), "cuckoofilter": ("#b279a2", "s"),
        "aleph-filter": ("#8a6bb8", "^"), "autoscale_cuckoo_filter": ("#c9a227", "^"), "bloom-lib": ("#6fb7c9", "D"),
        "(one": (INK, ""), "(two": (FAINT, ""),
        "koel (growing)": ("#e9a08f", "s"), "koel made for n items": ("#e9a08f", "s"), "koel, growing": (KOEL, ""),
        "fastbloom, 2 rotated": (OTHER, ""), "fastbloom, 3 rotated": ("#3f9c7a", ""),
        "fastbloom, 8 rotated": ("#c9a227", ""), "DashMap of time stamps": ("#8a8a8a", ""),
    }  # fmt: skip
    colour, marker = looks.get(peer) or looks.get(peer.split(" ")[0], ("#8f6b52", "o"))
    width = 2.6 if peer in ("koel", "koel, growing") else 1.3
    return {"color": colour, "marker": marker, "linewidth": width, "linestyle": "--" if peer.startswith("(") else "-"}


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


def peers(figures, folder):
    """Throughput of two threads by table size."""
    charts = {
        "hit": "hit", "miss": "miss", "fill": "fill", "crawl": "crawl: check-and-insert, own streams",
        "check-and-insert (lockstep)": "check-and-insert, all threads in lockstep", "mix": "mix: nine lookups to one insert",
    }  # fmt: skip
    names, some = distinct(figures.of(), "set"), [at for at in distinct(figures.of(), "at") if at.endswith(", 2 threads")]
    if not some:
        return
    places = {at: int(at.split(" ")[0]) << {"KiB": 10, "MiB": 20}[at.split(" ")[1].rstrip(",")] for at in some}
    named = {size: at.split(",")[0] for at, size in places.items()}
    bits = lambda peer, at: figures.value(peer, "bits an item", at, 0)

    def label(peer):
        if peer.startswith("("):
            return f"limit of the memory: {peer.strip('()')} a lookup"
        of_sizes = sorted({f"{bits(peer, at):.0f}" for at in places if bits(peer, at)}, key=int)
        return f"{peer}: {'–'.join(dict.fromkeys([of_sizes[0], of_sizes[-1]]))} bits"

    figure, panels = pyplot.subplots(2, 3, figsize=(12, 7.6))
    for panel, (workload, heading) in zip(panels.flat, charts.items()):
        axes(panel, heading, "table size (16-bit fingerprints)", "million operations / s", (True, True), named)
        legend = {}
        for peer in [*names[::-1], "in batches"]:
            of, which = ("koel", f"bulk {workload}") if peer == "in batches" else (peer, workload)
            points = [
                (places[row.at], row.value, bits(of, row.at) > 1.3 * bits("koel", row.at))
                for row in figures.of(set=of, what=which) if row.at in places
            ]  # fmt: skip
            look = style(of) | ({"linestyle": "--", "linewidth": 1.8} if of != peer else {})
            legend[peer] = curve(panel, points, label="koel, in batches" if of != peer else label(peer), **look)
    entries = [legend[peer] for peer in [*names, "in batches"]]
    note = "Bits are per item. A hollow mark: this table takes more than 1.3 times the memory of koel's."
    save(figure, folder / "sizes.svg", "Throughput by table size, 2 threads, 94 % load", note, entries, 3)


def growing(figures, panels, curves):
    """Draws, of sets that grow, a curve of each in each panel, and returns the legend."""
    powers = sorted({int(row.at) for row in figures.of() if math.log2(int(row.at)).is_integer()})
    named = {items: f"{items >> 20}M" if items >> 20 else f"{items >> 10}k" for items in powers}
    legend = []
    for peer in distinct(figures.of(), "set")[::-1]:
        # The curves of the two chains mostly cover each other.
        wide = {"linewidth": 3.5, "color": "#e5cb80", "zorder": 1} if peer.startswith("autoscale") else {}
        for panel, what, scale, more in curves:
            axis, title, unit = panels[panel]
            axes(axis, title, "items (k = 1024, M = 1024k)", unit, (True, True), named)
            points = [(int(row.at), scale(row)) for row in figures.of(set=peer, what=what)]
            line = curve(axis, points, label="koel, growing" if peer == "koel" else peer, **style(peer) | wide | more)
        legend.append(line)
    return legend[::-1]


def growth(figures, folder):
    """Speed and errors of sets that grow, and their memory."""
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 4.6))
    panels = [(left, "Lookups: hits, and misses (dashed)", "million lookups / s"), (right, "False positives", "percent")]
    value = lambda row: row.value
    curves = [
        (0, "miss", value, {"linestyle": "--", "marker": ""}), (0, "hit", value, {}),
        (1, "false positives", lambda row: 100 * row.value, {}),
    ]  # fmt: skip
    save(figure, folder / "lookups.svg", "Sets that grow, one thread: at each doubling", legend=growing(figures, panels, curves))

    figure, panel = pyplot.subplots(figsize=(12, 5))
    bytes_per_item = lambda row: row.value / int(row.at)
    legend = growing(figures, [(panel, "", "bytes per item")], [(0, "bytes", bytes_per_item, {"marker": ""})])
    save(figure, folder / "memory.svg", "Memory of sets that grow, by items so far", legend=legend)


def burst(figures, folder):
    figure, panels = pyplot.subplots(3, 1, figsize=(10, 7.6))
    titles = [("keys of the window", "million"), ("memory", "MB"), ("false positives (0.012 % was asked for)", "percent")]
    named = {window: str(window) for window in range(0, 22, 2)}
    for at, (panel, (title, unit)) in enumerate(zip(panels, titles)):
        axes(panel, title, "windows", unit, (False, at == 2), named, (1,))
    legend = []
    points = lambda peer, what, scale: [((int(row.at) + 1) / 7, scale(row.value)) for row in figures.of(set=peer, what=what)]
    for peer in distinct(figures.of(), "set")[::-1]:
        legend.append(curve(panels[1], points(peer, "bytes", lambda bytes: bytes / 1e6), label=peer, **style(peer)))
        # An exact set has none, and a sample may have none.
        rates = points(peer, "false positives", lambda rate: 100 * max(rate, 1e-5))
        if max(rate for _, rate in rates) > 1e-3:
            curve(panels[2], rates, **style(peer))
    curve(panels[0], points(peer, "items", lambda items: items / 1e6), color=INK, marker="", linewidth=1.6)
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
            least = min(values, default=1) / 2 if log else 0
            most = max(values, default=1) if log else most
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
                        label,
                        (end, at),
                        (7 if log else 4, 0),
                        textcoords="offset points",
                        va="center",
                        color=FAINT if value is None else INK,
                    )
                y += lines + 0.35
            panel.set_xticks([], minor=False)
            panel.xaxis.set_minor_locator(NullLocator())
            panel.set_yticks(places, [name for name, _ in rows] if column == 0 else [""] * len(rows))
            panel.tick_params(axis="y", length=0, labelcolor=INK)
    entries = [pyplot.Rectangle((0, 0), 1, 1, color=colour, label=name) for name, colour in (legend or {}).items()]
    save(figure, path, title, about, entries)


def durable(figures, folder):
    colours = {"koel": KOEL, "SQLite": OTHER, "fjall": "#3f9c7a", "Redis": "#8a6bb8", "Scrapy": "#c9a227"}
    # What is safest comes first.
    groups = ["takes nothing", "last second", "not synced yet", "may damage", "takes everything"]

    def line(row):
        label = f"{row.value / 1e6:.3g} M" if row.value >= 1e6 else f"{row.value / 1e3:.3g} k"
        colour = next(colour for name, colour in colours.items() if row.set.startswith(name))
        return row.set, [[(row.value, row.least, row.most, label, colour)]]

    rows = figures.of(what="add")
    found = sorted(distinct(rows, "at"), key=lambda at: next(rank for rank, words in enumerate(groups) if words in at))
    blocks = [(group, [""], [line(row) for row in rows if row.at == group], None) for group in found]
    about = "On a logarithmic scale: equal distances are equal factors. A line reaches from the slowest round to the fastest."
    bars(folder / "adds.svg", "New items a second, into sets that outlive their process", blocks, about, colours, log=True)


def module(figures, folder):
    kinds = {
        "keys": ("plain keys (SET, EXISTS, MSET)", "#9aa5b1"), "koel": ("koel (CF.*)", KOEL), "bloom": ("RedisBloom (CF.*)", OTHER),
    }  # fmt: skip
    titles = {
        "cpu": "CPU time of the server's main thread, microseconds an item", "memory, resident": "memory that the server took, bytes an item",
        "ten items, beyond an empty key": "a set of ten items, bytes beyond an empty key",
    }  # fmt: skip
    bar = lambda row: (row.value, row.least, row.most, f"{row.value:.3g}", kinds[row.set][1])
    blocks = []
    for what, title in titles.items():
        lines = [(at, [[bar(row) for row in figures.of(what=what, at=at)]]) for at in distinct(figures.of(what=what), "at")]
        blocks.append((title, [""], lines, None))
    legend = dict(kinds[kind] for kind in distinct(figures.of(), "set"))
    about = "A line reaches from the least that was measured to the most."
    bars(folder / "results.svg", "The module of koel beside plain keys", [block for block in blocks if block[2]], about, legend)


def wheel(figures, folder):
    """pykoel beside its peers: speed, memory, and more items than planned."""
    names, value = distinct(figures.of(what="items"), "set"), figures.value
    planned, told, levels = int(figures.about("items")), int(figures.about("told")), (1, 2, 10)
    items = {name: int(value(name, "items")) for name in names}
    noted = {name: name + f" ({items[name] // 1000}k)" * (items[name] < planned) for name in names}
    colour = lambda name: KOEL if name.startswith("pykoel") else OTHER

    def cell(name, what, missing):
        row = figures.row(name, what)
        if not row or row.value is None:
            return [(None, None, None, missing, colour(name))]
        return [(row.value, row.least, row.most, short(row.value), colour(name))]

    one = {
        "add if new": "add, and tell whether it was new",
        "look up, present": "look up, present",
        "look up, absent": "look up, absent",
    }
    many = [(name, how) for name in names for how in ("many", "many hashes") if value(name, f"add {how}")]
    columns = ["add {}", "look up {}, present", "look up {}, absent"]
    # A scale for the fast ones: pure Python is torn off.
    most = 2.2 * max((value(name, "add if new", missing=0) for name in names if name.startswith("pykoel")), default=500)
    blocks = [
        ("One item a call", list(one.values()), [(noted[name], [cell(name, what, "failed") for what in one]) for name in names], most),
        (
            "Many items a call: lists of str, and buffers of hashes", [column.format("many") for column in columns],
            [(name + ", hashes" * (how != "many"), [cell(name, column.format(how), "no such call") for column in columns]) for name, how in many],
            most,
        ),
    ]  # fmt: skip
    title = f"CPU time, nanoseconds an item, of {planned:,} URLs"
    bars(folder / "speed.svg", title, blocks, f"Medians, and the least and the most of {figures.about('rounds')} rounds.")

    def room(name, what):
        ((got, _, _, words, _),) = cell(name, what, "cannot be saved")
        if what != "memory" and value(name, "lost"):
            got, words = None, "not found again"
        got = got * 1e6 / items[name] if what == "load" and got else got
        return [(got, None, None, short(got) if got else words, colour(name))]

    titles = {"memory": "memory, bytes an item", "file": "file, bytes an item", "load": "load the file, ns an item"}
    lines = [(noted[name], [room(name, what) for what in titles]) for name in names]
    title = "Memory and files, of filters asked for one false positive in a million"
    bars(folder / "memory.svg", title, [("", list(titles.values()), lines, None)])

    def full(name, level):
        rate, lost = (value(name, f"overfull, {level} {what}") for what in ("rate", "lost"))
        if rate is None or figures.row(name, f"overfull, {level} says"):
            return [(None, None, None, "refused more" if level > 1 or rate is not None else "failed", colour(name))]
        return [(rate, None, None, counted(figures, rate) + (f", {lost:,.0f} lost" if lost else ""), colour(name))]

    lines = [(name, [full(name, level) for level in levels]) for name in names]
    title = f"False positives of filters that were made for {told:,} items (log scale)"
    block = ("", [f"after {told * level:,} items" for level in levels], lines, None)
    bars(folder / "overfull.svg", title, [block], "pykoel, growing and the sets were told nothing.", log=True)

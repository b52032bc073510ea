"""The tables of the figures, in text or in Markdown: what `draw.py` writes beside the CSV files."""

from kit import distinct


def text(rows):
    """Rows of cells, of which the first has the headings. The first column is aligned to the left, the others to the right."""
    widths = [max(len(row[at]) for row in rows if at < len(row)) for at in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        lines.append("".join(f"  {cell}" for cell in cells) + "\n")
    return "".join(lines)


def markdown(rows, align="---:"):
    lines = ["| " + " | ".join(row) + " |\n" for row in rows]
    return lines[0] + "|---" + f"|{align}" * (len(rows[0]) - 1) + "|\n" + "".join(lines[1:])


def table(figures, rows, heading, columns, name=lambda row: row.set, missing=""):
    """A line for the set and place of each of these rows, and a column for each figure: which one, and how it is shown."""
    lines = [[heading, *columns]]
    for row in rows:
        cells = [(figures.row(row.set, what, row.at), show) for what, show in columns.values()]
        lines.append([name(row), *(missing if cell is None else show(cell) for cell, show in cells)])
    return lines


def grid(figures, at, title, columns, decimals):
    """A table of the figures at a place: a line for each set that has any of them, and a column for each figure."""
    rows = {row.set: row for row in reversed(figures.of(at=at)) if row.what in columns}
    sets = [rows[name] for name in distinct(figures.of(at=at), "set") if name in rows]
    return text(table(figures, sets, title, {what: (what, digits(decimals)) for what in columns}))


def grids(figures, columns, decimals, unit=""):
    """The grid of each place."""
    return "\n".join(grid(figures, at, at + unit, columns, decimals) for at in distinct(figures.of(), "at"))


def digits(decimals, scale=1, unit=""):
    """Shows the value of a row: times `scale`, with so many decimals, and its unit."""
    return lambda row: f"{scale * row.value:.{decimals}f}{unit}"


percent = digits(4, 100, " %")


def short(value):
    """Two digits, or a whole number."""
    return f"{value:,.{0 if value >= 9.95 else 1}f}"


# Sets that threads share.

WORKLOADS = [
    "fill", "last 5 %", "hit", "miss", "mix", "crawl", "churn", "delete", "check-and-insert (lockstep)", "bulk fill", "bulk hit",
    "bulk miss",
]  # fmt: skip


def peers(figures):
    def bad(peer, workload, at):
        """Faults that koel must not have."""
        return any(figures.value(peer, f"{workload}: {fault}", at) for fault in ("wrong", "refused"))

    def bits(peer, at):
        return figures.value(peer, "bits an item", at)

    def rate(peer, at):
        return figures.value(peer, "miss: false positives", at, 0)

    def speeds(at):
        lines = [[at, *WORKLOADS, "bits/item"]]
        for peer in distinct(figures.of(at=at), "set"):
            cells = []
            for workload in WORKLOADS:
                value = figures.value(peer, workload, at)
                cells.append("-" if value is None else f"{value:.1f}" + "!" * bad(peer, workload, at))
            mark = "*" if bits(peer, at) and bits(peer, at) > 1.3 * bits("koel", at) else ""
            lines.append([peer, *cells, f"{bits(peer, at):.1f}{mark}" if bits(peer, at) else "-"])
        return "\n" + text(lines)

    def ratios(at):
        def best(mine, rows):
            if not rows:
                return ["-", ""]
            first = max(reversed(rows), key=lambda row: row.value)
            return [f"{mine / first.value:.2f}", f"{first.set} {first.value:.1f}"]

        def is_alike(peer):
            return bits(peer, at) <= 1.25 * bits("koel", at) and rate(peer, at) <= 2 * rate("koel", at) + 1e-5

        lines = [[at, "of all", "", "of the small and exact", ""]]
        for workload in WORKLOADS:
            mine = figures.value("koel", workload, at)
            others = figures.of(at=at, what=workload.removeprefix("bulk "))
            right = [row for row in others if not row.set.startswith(("koel", "(")) and not bad(row.set, row.what, at)]
            if mine is not None:
                lines.append([workload, *best(mine, right), *best(mine, [row for row in right if is_alike(row.set)])])
        return "\n" + text(lines)

    places = distinct(figures.of(), "at")
    return (
        f"{figures.about()}\nMillion operations a second, medians. An asterisk: the peer takes more than 1.3 times the memory of "
        f"koel. An exclamation mark: some answers were wrong.\n{''.join(map(speeds, places))}\nkoel : best peer whose answers "
        "were right; of all, and of those that take at most a quarter more memory and err at most twice as often. Batches are "
        f"compared with the loops of the others.\n{''.join(map(ratios, places))}"
    )


# Sets that grow, and sets that forget.


def partitioned(figures):
    ways = {f"{row.at}: {row.note}" for row in figures.of(what="bulk hit") if row.note}
    columns = ["bulk fill", "bulk hit", "bulk miss", "bits an item"]
    return f"{figures.about()}; {'; '.join(sorted(ways))}\n\n{grids(figures, columns, 1, ', M/s')}"


def growth(figures):
    told = f"{figures.about()}\nSets that grow, on one thread. Million operations a second, medians; the fill is that of all items so far.\n"
    columns = {what: (what, digits(1)) for what in ("fill", "hit", "miss")} | {
        "false positives": ("false positives", percent), "as told": ("told", percent),
        "bytes/item": ("bytes", lambda row: f"{row.value / int(row.at):.2f}"), "lost": ("lost", lambda row: f"{row.most or row.value:.0f}"),
    }  # fmt: skip
    for name in distinct(figures.of(), "set"):
        told += "\n" + text(table(figures, figures.of(set=name, what="fill"), name, columns, lambda row: row.at))
    fixed = "koel made for n items"
    ratios = [
        figures.value("koel", "bytes", row.at) / row.value
        for row in figures.of(set=fixed, what="bytes")
        if int(row.at) >= 1 << 19 and figures.row("koel", "bytes", row.at)
    ]
    if ratios:
        told += f"\nmemory of koel : {fixed}, from 2^19 on: at most {max(ratios):.2f}, {sum(ratios) / len(ratios):.2f} on average\n"
    return told


errors = growth


def windows(figures):
    columns = {
        "bits": ("bits", lambda row: f"{row.most:.1f}"), "stay": ("stay", lambda row: f"{row.least:.0f}–{row.most:.0f}"),
        "missed": ("missed", percent), "found": ("found", percent),
    } | {what: (what, digits(1)) for what in ("tick", "put", "hit", "miss")}  # fmt: skip
    return (
        f"{figures.about()}\nBits for each key of the window, at most; how many ticks a key stays, from when it came; keys of\n"
        "the window that are missed, and absent ones that are found; milliseconds for a tick; million\n"
        "operations a second of one thread, medians: put if absent, of new keys; lookups of keys of the\n"
        f"window and of absent ones.\n\n{text(table(figures, figures.of(what='bits'), '', columns))}"
    )


# koel alone.


def hints(figures):
    columns = ["fill", "hit", "miss", "bulk fill", "bulk hit"]
    return f"{figures.about()}\nMillion operations a second; medians.\n\n{grids(figures, columns, 1)}"


def snapshots(figures):
    told = figures.about() + "\n"
    for at in distinct(figures.of(), "at"):
        columns = [["seconds", "MiB/s"], ["first, ms", "one by one, M/s", "batches, M/s"], ["theirs", "shared"]]
        tables = [grid(figures, at, at, names, 3) for names in columns if any(figures.of(at=at, what=names[0]))]
        told += "\n" + "\n".join(tables)
    return told


def waits(figures):
    def time(row):
        units = {"ns": (1, 0), "µs": (1e3, 1), "ms": (1e6, 2)}
        unit, (scale, decimals) = [it for it in units.items() if row.value >= it[1][0] or it[0] == "ns"][-1]
        return f"{row.value / scale:.{decimals}f} {unit}"

    shares = ["50 %", "99 %", "99.9 %", "99.99 %", "99.9999 %", "longest"]
    columns = {"times": ("times", digits(0))} | {share: (share, time) for share in shares}
    places = [text(table(figures, figures.of(at=at, what="times"), at, columns)) for at in distinct(figures.of(), "at")]
    told = f"{figures.about()}\nHow long single operations take, and how many there were in a round; medians of the rounds.\n"
    return "\n".join([told, *places])


def loads(figures):
    columns = {
        "capacity": ("buckets", lambda row: row.at),
        "buckets": ("buckets", digits(0)), "shards": ("shards", digits(0)), "fills": ("fills", digits(0)),
    } | {what: (what, digits(2, 100, " %")) for what in ("mean", "worst", "promised")}  # fmt: skip
    return f"{figures.about()}\n{text(table(figures, figures.of(what='buckets'), 'bits×slots', columns))}"


def dropped(figures):
    columns = {
        "bits an item": ("bits an item", digits(2)), "new URLs dropped": ("dropped", digits(0)), "of": ("of", digits(0)),
        "%": ("dropped", lambda row: f"{100 * row.value / figures.value(row.set, 'of'):.4f}"),
    }  # fmt: skip
    return f"{figures.about()}\n{text(table(figures, figures.of(what='dropped'), 'bits×slots', columns))}"


# Sets that outlive their process.


def three(figure):
    """Three digits."""
    return f"{figure:.{0 if abs(figure) >= 100 else 1 if abs(figure) >= 10 else 2}f}"


def per_second(figure):
    return next(
        f"{three(figure / scale)}{unit}" for scale, unit in ((1e6, " M"), (1e3, " k"), (1, "")) if figure >= scale or scale == 1
    )


def durable(figures):
    adds = figures.of(what="add")
    one_thread = [row for row in adds if "2 threads" not in row.set]
    speed, shown = (lambda row: per_second(row.value)), (lambda row: three(row.value))
    milliseconds = lambda row: three(1e3 * row.value)
    speeds = {
        "add, new": ("add", speed), "add, present": ("present", speed), "look up, present": ("hit", speed),
        "look up, absent": ("miss", speed),
    }  # fmt: skip
    room = {
        "resident memory": ("memory", shown), "of it, of no file": ("anonymous", shown), "on disk": ("on disk", shown),
        "on disk, at most": ("most on disk", shown), "opened after a kill, ms": ("open after a kill", milliseconds),
        "after it was closed, ms": ("open", milliseconds),
    }  # fmt: skip

    def taken(row):
        lost, answered = (figures.row(row.set, what, row.at) for what in ("lost", "answered"))
        if lost and lost.most:
            return f"up to {lost.most:g} of the last adds"
        return f"nothing (of {per_second(answered.value)} a round)" if answered else "everything"

    losses = {"`kill -9` takes": ("add", taken), "what else may be lost": ("add", lambda row: row.at)}
    tables = [
        markdown(table(figures, adds, "items a second", speeds, missing="–")),
        markdown(table(figures, [row for row in one_thread if not row.note], "bytes an item", room, missing="–")),
        markdown(table(figures, one_thread, "what is lost", losses), "---"),
    ]
    about = f"# Sets that outlive their process\n\n{figures.about()}\n[What each figure means](../../durable.md).\n\n"
    return about + "\n".join(tables)


# The wheel.


def number(row):
    if row is None or row.value is None:
        return "–"
    return f"{row.value:,.{0 if row.value >= 10 else 1}f}"


def counted(figures, rate):
    """A rate among absent items, in words."""
    absent = int(figures.about("absent"))
    if round(rate * absent) < 100:
        return f"{round(rate * absent)} of {absent:,}"
    return f"{rate:.1%}" if rate >= 0.001 else f"{rate:.3%}"


def wheel(figures):
    rows, value, about = figures.of(what="items"), figures.value, figures.about
    items = {row.set: int(row.value) for row in rows}
    says = lambda name, what: (row := figures.row(name, what)) and row.note
    exponent = lambda rate: f"{rate:.0e}".replace("e-0", "e-") if rate else "0"

    def note(row):
        words = row.note
        if lost := value(row.set, "lost"):
            words += f"; {lost:,.0f} of {items[row.set]:,} items were not found again"
        if now := value(row.set, "rate at the end"):
            words += f"; its own estimate of its rate at the end is {exponent(now)}"
        if said := says(row.set, "says"):
            words += f" ({said.split(':')[0]})"
        return words or " "

    def overfull(level):
        def words(row):
            found, lost = (value(row.set, f"overfull, {level} {what}") for what in ("rate", "lost"))
            words = "–" if found is None else counted(figures, found)
            if said := says(row.set, f"overfull, {level} says"):
                words = f"{said} ({words})"
            return words + (f"; {lost:,.0f} items lost" if lost else "")

        return "items", words

    how_many = {"items": ("items", lambda row: f"{row.value:,.0f}")}
    single = {
        "add": ("add", number), "add if new": ("add if new", number), "present": ("look up, present", number),
        "absent": ("look up, absent", number),
    }  # fmt: skip
    room = {
        "rate asked for": ("rate", lambda row: exponent(row.value)), "memory, bytes an item": ("memory", number),
        "at most meanwhile": ("memory, peak", number), "file, bytes an item": ("file", number), "save, ms": ("save", number),
        "load, ms": ("load", number), "": ("items", note),
    }  # fmt: skip
    many = [["many items a call, ns an item", "given", "add", "present", "absent"]]
    for name in items:
        for how, given in {"many": "list of str", "many hashes": "hashes (uint64)"}.items():
            columns = [f"add {how}", f"look up {how}, present", f"look up {how}, absent"]
            if value(name, columns[0]):
                many.append([name, given, *(number(figures.row(name, column)) for column in columns)])
    wrong = []
    for row in figures.of():
        if row.what in ("failed", "overfull, failed"):
            wrong.append(f"* {row.set}{', overfull' * (row.what != 'failed')}: {row.note}\n")
        elif row.what.startswith("lost: "):
            wrong.append(f"* {row.set}, {row.what[6:]}: {row.value:,.0f} of {items[row.set]:,} items were not found\n")
        elif row.what.startswith("wrong: "):
            wrong.append(f"* {row.set}, {row.what[7:]}: {row.value:,.0f} false positives of {items[row.set]:,}\n")
    told, left_out, loop = int(about("told")), about("left out"), value("set of str", "loop")
    full = {f"after {told * level:,}": overfull(level) for level in (1, 2, 10)}
    shown = lambda heading, columns: markdown(table(figures, rows, heading, columns, missing="–"))
    return f"""\
# pykoel beside its peers

`{about("command")}` in `python/`, {about("date")}, Python {about("Python")}, {about("machine")};
{about("versions")}.{f" Not installed, and left out: {left_out}." if left_out else ""}

Medians of {about("rounds")} rounds. Other work ran on the machine now and then, so ratios within this run mean more
than absolute figures. [How it is measured](../README.md).

## Speed

CPU time of URLs of some {about("bytes of a URL")} bytes, or of fingerprints that were made before. The loop is in the
figures of one item a call{f", and takes {loop:.0f} ns itself." if loop else "."} Slow kinds were given fewer items.

![Speed](speed.svg)

{shown("one item a call, ns", how_many | single)}
{markdown(many)}
## Memory and files

How much the process grew. A set keeps its strings alive, which are in the figure. Files are written to and
read from the page cache; loads are in a new process, which then looks for all items.

![Memory](memory.svg)

{shown("", how_many | room)}
## More items than planned

Filters that were made for {told:,} items, and the false positives among {int(about("absent")):,} absent ones.
All that was added is then looked for. *pykoel, growing* and the sets were told nothing. cuckoopy is told buckets:
it has the power of two that holds the items at a load of at most 95%. With more buckets it loses fewer items.

![Overfull](overfull.svg)

{shown("", full)}\
""" + "\n## What went wrong\n\n" * bool(wrong) + "".join(wrong)


def batches(figures):
    sizes, rounds = distinct(figures.of(), "at"), figures.of()[0].rounds
    told = f"Thousand items a second, added (all new) and looked up (all present): medians of {rounds:.0f}, in batches of"
    lines = ["".join([f"{'':36}", *(f"{size:>16}" for size in sizes)])]
    for kind in distinct(figures.of(), "set"):
        speeds = (f"{figures.value(kind, 'add', size):,.0f}, {figures.value(kind, 'look up', size):,.0f}" for size in sizes)
        lines.append("".join([f"{kind:36}", *(f"{speed:>16}" for speed in speeds)]))
    return "\n".join([figures.about(), told, "", *lines, ""])


# The command beside other tools.


def dedup(figures):
    value = lambda name, what="time": max(figures.value(name, what), 0.001)
    lines = int(figures.about("sample").split(" ")[0])
    best = min(value(f"`{name}`") for name in ("huniq", "runiq", "mawk '!seen[$0]++'"))
    columns = {
        "time": ("time", lambda row: f"{value(row.set):.2f} s"),
        "lines a second": ("time", lambda row: f"{lines / value(row.set) / 1e6:.1f} M"),
        "memory": ("memory", digits(0, 1e-6, " MB")),
        "times as fast as the best peer": ("time", lambda row: f"{best / value(row.set):.1f} ×"),
    }
    rows = [row for row in figures.of(what="time") if "`" in row.set]
    told = f"{figures.about()}\n\n{markdown(table(figures, rows, '', columns), '---')}\n"
    for where, cat, koel in [
        ("a file", "*`cat`, to a file*", "**`koel dedup`**"),
        ("nowhere", "cat, to nowhere", "koel, to nowhere"),
    ]:
        both = value("wc -l") + value(cat)
        told += f"wc -l and cat to {where} take {both:.2f} s: koel to {where} goes {both / value(koel):.2f} times as fast as the two together\n"
    least = min(value(name, "memory") for name in ("`huniq`", "`runiq`"))
    told += f"memory: {value('**`koel dedup`**', 'memory') / least:.3f} of the leanest that holds hashes\n"
    for row in figures.of(what="missing"):
        told += f"{row.set}: at most {row.most:.0f} lines are missing\n"
    return told


def alone(figures):
    ways = ["whole lines", "`--json-field`", "with `--url`"]
    costs = [["CPU of `koel dedup`", *ways]]
    for name in distinct([row for row in figures.of(what="cpu") if row.at in ways], "set"):
        rows = [figures.row(name, "cpu", way) for way in ways]
        costs.append([name, *(f"{row.value:.2f} s" if row else "–" for row in rows)])
    columns = {"time": ("time", digits(0, 1e3, " ms")), "memory": ("memory", digits(0, 1e-6, " MB"))}
    queries = table(figures, figures.of(at="query", what="time"), "`koel query`", columns)
    return f"{figures.about()}\n\n{markdown(costs, '---')}\n{markdown(queries, '---')}"


def files(figures):
    columns = {
        "time": ("time", digits(2, unit=" s")), "user time": ("user", digits(2, unit=" s")),
        "peak memory": ("memory", lambda row: f"{row.most / 1e6:.0f} MB"), "filter": ("filter", digits(1, 1e-6, " MB")),
        "kept twice": ("kept twice", digits(0)), "lost": ("lost", digits(0)),
    }  # fmt: skip
    places = [table(figures, figures.of(at=at, what="time"), at, columns) for at in distinct(figures.of(), "at")]
    return "\n".join([figures.about() + "\n", *(markdown(rows, "---") for rows in places)])

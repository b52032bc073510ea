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


def grid(figures, at, title, columns, decimals):
    """A table of the figures at a place: a line for each set that has any of them, and a column for each figure."""
    rows = [row for row in figures.of(at=at) if row.what in columns]
    cell = lambda row: f"{row.value:.{decimals}f}" if row else ""
    lines = [[name, *(cell(figures.row(name, what, at)) for what in columns)] for name in distinct(rows, "set")]
    return text([[title, *columns], *lines])


def percent(rate):
    return "" if rate is None else f"{100 * rate:.4f} %"


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
    columns = ["bulk fill", "bulk hit", "bulk miss", "bits an item"]
    grids = [grid(figures, at, f"{at}, M/s", columns, 1) for at in distinct(figures.of(), "at")]
    ways = {f"{row.at}: {row.note}" for row in figures.of(what="bulk hit") if row.note}
    return "\n".join([f"{figures.about()}; {'; '.join(sorted(ways))}\n", *grids])


def growth(figures):
    told = f"{figures.about()}\nSets that grow, on one thread. Million operations a second, medians; the fill is that of all items so far.\n"
    for name in distinct(figures.of(), "set"):
        lines = [[name, "fill", "hit", "miss", "false positives", "as told", "bytes/item", "lost"]]
        for row in figures.of(set=name, what="fill"):
            value = lambda what: figures.value(name, what, row.at)
            speeds = [f"{value(what):.1f}" for what in ("fill", "hit", "miss")]
            lost = f"{figures.row(name, 'lost', row.at).most or value('lost'):.0f}"
            lines.append([
                row.at, *speeds, percent(value("false positives")), percent(value("told")), f"{value('bytes') / int(row.at):.2f}", lost,
            ])  # fmt: skip
        told += "\n" + text(lines)
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


def speed(figures):
    """koel as it grows beside a filter of fixed size. The first place is that of filters of few items."""
    few, *places = distinct(figures.of(), "at")
    grows, fixed = (figures.value(name, "bytes", few) for name in ("grows", "fixed"))
    told = f"{figures.about()}\n  made for {few}: {grows:.0f} bytes if it grows, {fixed:.0f} if not\n"
    for at in places:
        size = lambda name: f"{figures.value(name, 'bytes', at) / 2**20:.1f} MiB"
        load = figures.value("grows", "load", at)
        lines = [[f"{at}, load {load:.2f}, M/s", size("grows"), f"fixed, {size('fixed')}", "grows : fixed"]]
        for row in figures.of(set="grows : fixed", at=at):
            cells = (figures.value(name, row.what, at) for name in ("grows", "fixed", "grows : fixed"))
            lines.append([row.what, *(f"{cell:.2f}" for cell in cells)])
        told += "\n" + text(lines)
    return told


def windows(figures):
    lines = [["", "bits", "stay", "missed", "found", "tick", "put", "hit", "miss"]]
    for name in distinct(figures.of(), "set"):
        value, stay = (lambda what: figures.value(name, what)), figures.row(name, "stay")
        speeds = [f"{value(what):.1f}" for what in ("tick", "put", "hit", "miss")]
        bits = f"{figures.row(name, 'bits').most:.1f}"
        lines.append([name, bits, f"{stay.least:.0f}–{stay.most:.0f}", percent(value("missed")), percent(value("found")), *speeds])
    return (
        f"{figures.about()}\nBits for each key of the window, at most; how many ticks a key stays, from when it came; keys of\n"
        "the window that are missed, and absent ones that are found; milliseconds for a tick; million\n"
        "operations a second of one thread, medians: put if absent, of new keys; lookups of keys of the\n"
        f"window and of absent ones.\n\n{text(lines)}"
    )


# koel alone.


def many(figures):
    told = figures.about() + "\n"
    for at in distinct(figures.of(), "at"):
        one, two = "1 thread", "2 threads"
        times = max(row.rounds for row in figures.of(at=at, what=one))
        lines = [[f"{at}, {times:.0f} times, M/s", one, two, "2 : 1"]]
        for row in figures.of(at=at, what=one):
            both = figures.value(row.set, two, at, float("nan"))
            ratio = [f"{both / row.value:.2f}"] if row.unit != "ratio" else []
            lines.append([row.set, f"{row.value:.2f}", f"{both:.2f}", *ratio])
        had_both = max((row.rounds for row in figures.of(at=at, what=two)), default=0)
        told += text(lines) + f"  {had_both:.0f} repetitions had both cores\n"
    return told


def snapshots(figures):
    told = figures.about() + "\n"
    for at in distinct(figures.of(), "at"):
        columns = [["seconds", "MiB/s"], ["first, ms", "one by one, M/s", "batches, M/s"], ["theirs", "shared"]]
        tables = [grid(figures, at, at, names, 3) for names in columns if any(figures.of(at=at, what=names[0]))]
        told += "\n" + "\n".join(tables)
    return told


def waits(figures):
    def time(nanos):
        if nanos < 1e3:
            return f"{nanos:.0f} ns"
        return f"{nanos / 1e3:.1f} µs" if nanos < 1e6 else f"{nanos / 1e6:.2f} ms"

    shares = ["50 %", "99 %", "99.9 %", "99.99 %", "99.9999 %", "longest"]
    told = f"{figures.about()}\nHow long single operations take, and how many there were in a round; medians of the rounds.\n"
    for at in distinct(figures.of(), "at"):
        lines = [[at, "times", *shares]]
        for row in figures.of(at=at, what="times"):
            lines.append([row.set, f"{row.value:.0f}", *(time(figures.value(row.set, share, at)) for share in shares)])
        told += "\n" + text(lines)
    return told


def loads(figures):
    lines = [["bits", "capacity", "buckets×slots", "shards", "fills", "mean", "worst", "promised"]]
    for row in figures.of(what="buckets"):
        value = lambda what: figures.value(row.set, what, row.at)
        shares = (f"{100 * value(what):.2f} %" for what in ("mean", "worst", "promised"))
        lines.append(
            [row.set, row.at, f"{row.value:.0f}×{value('slots'):.0f}", f"{value('shards'):.0f}", f"{value('fills'):.0f}", *shares]
        )
    return f"{figures.about()}\n{text(lines)}"


def dropped(figures):
    lines = [["bits", "bits an item", "new URLs dropped", "of", "%"]]
    for row in figures.of(what="dropped"):
        bits, urls = (figures.value(row.set, what) for what in ("bits an item", "of"))
        lines.append([row.set, f"{bits:.2f}", f"{row.value:.0f}", f"{urls:.0f}", f"{100 * row.value / urls:.4f}"])
    return f"{figures.about()}\n{text(lines)}"


# Sets that outlive their process.


def three(figure):
    """Three digits."""
    return f"{figure:.{0 if abs(figure) >= 100 else 1 if abs(figure) >= 10 else 2}f}"


def per_second(figure):
    return next(
        f"{three(figure / scale)}{unit}" for scale, unit in ((1e6, " M"), (1e3, " k"), (1, "")) if figure >= scale or scale == 1
    )


def durable(figures):
    rows = {row.set: row for row in figures.of(what="add")}

    def find(name, what):
        return figures.row(name, what, rows[name].at)

    speeds = {"add, new": "add", "add, present": "present", "look up, present": "hit", "look up, absent": "miss"}
    room = {
        "resident memory": ("memory", 1), "of it, of no file": ("anonymous", 1), "on disk": ("on disk", 1),
        "on disk, at most": ("most on disk", 1), "opened after a kill, ms": ("open after a kill", 1e3),
        "after it was closed, ms": ("open", 1e3),
    }  # fmt: skip
    fast, small, safe = (
        [["items a second", *speeds]],
        [["bytes an item", *room]],
        [["what is lost", "`kill -9` takes", "what else may be lost"]],
    )
    cell = lambda row, show, scale=1: "–" if row is None else show(row.value * scale)
    for name, row in rows.items():
        fast.append([name, *(cell(find(name, what), per_second) for what in speeds.values())])
        if not row.note and "2 threads" not in name:
            small.append([name, *(cell(find(name, what), three, scale) for what, scale in room.values())])
        if "2 threads" not in name:
            lost, answered = find(name, "lost"), find(name, "answered")
            taken = f"nothing (of {per_second(answered.value)} a round)" if answered else "everything"
            safe.append([name, f"up to {lost.most:g} of the last adds" if lost and lost.most else taken, row.at])
    about = f"# Sets that outlive their process\n\n{figures.about()}\n[What each figure means](../../durable.md).\n\n"
    return about + "\n".join([markdown(fast), markdown(small), markdown(safe, "---")])


# The wheel.


def number(value):
    return "–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value < 10 else f"{value:.0f}"


def counted(figures, rate):
    """A rate among absent items, in words."""
    absent = int(figures.about("absent"))
    if round(rate * absent) < 100:
        return f"{round(rate * absent)} of {absent:,}"
    return f"{rate:.1%}" if rate >= 0.001 else f"{rate:.3%}"


def wheel(figures):
    names, value, about = distinct(figures.of(what="items"), "set"), figures.value, figures.about
    items = {name: int(value(name, "items")) for name in names}
    says = lambda name, what: (row := figures.row(name, what)) and row.note
    single, many, room, full = [], [], [], []
    for name in names:
        cells = (number(value(name, what)) for what in ("add", "add if new", "look up, present", "look up, absent"))
        single.append([name, f"{items[name]:,}", *cells])
        for how, given in {"many": "list of str", "many hashes": "hashes (uint64)"}.items():
            columns = [f"add {how}", f"look up {how}, present", f"look up {how}, absent"]
            if value(name, columns[0]):
                many.append([name, given, *(number(value(name, column)) for column in columns)])
        note, exponent = says(name, "items"), lambda rate: f"{rate:.0e}".replace("e-0", "e-")
        if lost := value(name, "lost"):
            note += f"; {lost:,.0f} of {items[name]:,} items were not found again"
        if now := value(name, "rate at the end"):
            note += f"; its own estimate of its rate at the end is {exponent(now)}"
        if said := says(name, "says"):
            note += f" ({said.split(':')[0]})"
        rate = value(name, "rate")
        cells = (number(value(name, what)) for what in ("memory", "memory, peak", "file", "save", "load"))
        room.append([name, f"{items[name]:,}", exponent(rate) if rate else "0", *cells, note or " "])
        cells = []
        for level in (1, 2, 10):
            found, lost = (value(name, f"overfull, {level} {what}") for what in ("rate", "lost"))
            words = "–" if found is None else counted(figures, found)
            if said := says(name, f"overfull, {level} says"):
                words = f"{said} ({words})"
            cells.append(words + (f"; {lost:,.0f} items lost" if lost else ""))
        full.append([name, *cells])
    wrong = []
    for row in figures.of():
        if row.what in ("failed", "overfull, failed"):
            wrong.append(f"* {row.set}{', overfull' * (row.what != 'failed')}: {row.note}\n")
        elif row.what.startswith("lost: "):
            wrong.append(f"* {row.set}, {row.what[6:]}: {row.value:,.0f} of {items[row.set]:,} items were not found\n")
        elif row.what.startswith("wrong: "):
            wrong.append(f"* {row.set}, {row.what[7:]}: {row.value:,.0f} false positives of {items[row.set]:,}\n")
    told, left_out, loop = int(about("told")), about("left out"), value("set of str", "loop")
    head = [
        "",
        "items",
        "rate asked for",
        "memory, bytes an item",
        "at most meanwhile",
        "file, bytes an item",
        "save, ms",
        "load, ms",
        "",
    ]
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

{markdown([["one item a call, ns", "items", "add", "add if new", "present", "absent"], *single])}
{markdown([["many items a call, ns an item", "given", "add", "present", "absent"], *many])}
## Memory and files

How much the process grew. A set keeps its strings alive, which are in the figure. Files are written to and
read from the page cache; loads are in a new process, which then looks for all items.

![Memory](memory.svg)

{markdown([head, *room])}
## More items than planned

Filters that were made for {told:,} items, and the false positives among {int(about("absent")):,} absent ones.
All that was added is then looked for. *pykoel, growing* and the sets were told nothing. cuckoopy is told buckets:
it has the power of two that holds the items at a load of at most 95%. With more buckets it loses fewer items.

![Overfull](overfull.svg)

{markdown([["", *(f"after {told * level:,}" for level in (1, 2, 10))], *full])}\
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
    rows = [["", "time", "lines a second", "memory", "times as fast as the best peer"]]
    for name in distinct(figures.of(what="time"), "set"):
        if "`" in name:
            seconds, memory = value(name), value(name, "memory") / 1e6
            rows.append([name, f"{seconds:.2f} s", f"{lines / seconds / 1e6:.1f} M", f"{memory:.0f} MB", f"{best / seconds:.1f} ×"])
    told = f"{figures.about()}\n\n{markdown(rows, '---')}\n"
    for where, cat, koel in ("a file", "*`cat`, to a file*", "**`koel dedup`**"), (
        "nowhere",
        "cat, to nowhere",
        "koel, to nowhere",
    ):
        both = value("wc -l") + value(cat)
        told += f"wc -l and cat to {where} take {both:.2f} s: koel to {where} goes {both / value(koel):.2f} times as fast as the two together\n"
    least = min(value(name, "memory") for name in ("`huniq`", "`runiq`"))
    told += f"memory: {value('**`koel dedup`**', 'memory') / least:.3f} of the leanest that holds hashes\n"
    for row in figures.of(what="missing"):
        told += f"{row.set}: at most {row.most:.0f} lines are missing\n"
    return told


def skew(figures):
    names = ["koel, 1 thread", "koel, 2 threads", "huniq", "runiq", "mawk"]
    rows = [["CPU seconds", *names, "koel of the best peer", "wall, 2 threads of 1"]]
    for at in distinct(figures.of(), "at"):
        one, two, *others = (figures.value(name, "cpu", at) for name in names)
        wall = figures.value(names[1], "time", at) / figures.value(names[0], "time", at)
        rows.append([at, *(f"{cpu:.2f}" for cpu in (one, two, *others, two / min(others), wall))])
    return f"{figures.about()}\n\n{markdown(rows, '---')}"


def files(figures):
    told = figures.about() + "\n"
    for at in distinct(figures.of(), "at"):
        rows = [[at, "time", "user time", "peak memory", "filter", "kept twice", "lost"]]
        for name in distinct(figures.of(at=at), "set"):
            value = lambda what: figures.value(name, what, at)
            seconds = (f"{value(what):.2f} s" for what in ("time", "user"))
            memory = f"{figures.row(name, 'memory', at).most / 1e6:.0f} MB"
            rows.append(
                [
                    name,
                    *seconds,
                    memory,
                    f"{value('filter') / 1e6:.1f} MB",
                    *(f"{value(what):.0f}" for what in ("kept twice", "lost")),
                ]
            )
        told += "\n" + markdown(rows, "---")
    return told

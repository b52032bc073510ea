"""What the benches in Python share with `draw.py`: figures, in the one form of CSV that every bench writes.

A row is a figure of a set at a place, which is what the figure depends on: a size, a number of items, a kind of work. It
has the median of its rounds, the least and the most. Rows without a set tell of the run. `src/kit/figures.rs` writes the
same form.
"""

import csv, datetime, os, pathlib, platform, statistics, subprocess, sys, typing

TOP = pathlib.Path(__file__).parents[1]


class Row(typing.NamedTuple):
    bench: str
    set: str
    what: str
    at: str
    value: float | None
    least: float | None
    most: float | None
    rounds: int | None
    unit: str
    note: str


class Figures:
    """The figures of a bench."""

    def __init__(self, bench, rows=()):
        self.bench, self.rows = bench, list(rows)
        self.known = {(row.set, row.what, row.at): row for row in self.rows}
        self.rounds, self.notes = {}, {}

    def note(self, set, what, value, unit, at="", note=""):
        """Notes a figure of a round."""
        self.rounds.setdefault((set, what, at, unit), []).append(value)
        if note:
            self.notes[set, what, at] = note

    def say(self, what, note, set=""):
        """Notes words on the run, or on a set."""
        self.rows.append(Row(self.bench, set, what, "", None, None, None, None, "", str(note)))

    def write(self, path):
        for (set, what, at, unit), values in self.rounds.items():
            ends = [float(f"{value:.6g}") for value in (statistics.median(values), min(values), max(values))]
            self.rows.append(Row(self.bench, set, what, at, *ends, len(values), unit, self.notes.get((set, what, at), "")))
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerows([Row._fields, *self.rows])
        subprocess.run([sys.executable, TOP / "benches/draw.py", "--print", path], check=True)

    # What `draw.py` asks.

    def about(self, what=None):
        """What the rows without a set say: all of it, or one of them."""
        told = {row.what: row.note for row in self.rows if not row.set}
        return "\n".join(told.values()) if what is None else told[what]

    def of(self, **fields):
        """The rows of sets that have these fields, in their order."""
        return [row for row in self.rows if row.set and all(getattr(row, name) == it for name, it in fields.items())]

    def row(self, set, what, at=""):
        return self.known.get((set, what, at))

    def value(self, set, what, at="", missing=None):
        row = self.known.get((set, what, at))
        return missing if row is None or row.value is None else row.value


def distinct(rows, field):
    return list(dict.fromkeys(getattr(row, field) for row in rows))


def read(path):
    """The figures of each bench of a file."""
    number = lambda text: float(text) if text else None
    with open(path, newline="") as file:
        lines = csv.reader(file)
        if tuple(next(lines)) != Row._fields:
            sys.exit(f"{path} does not have the columns {','.join(Row._fields)}")
        rows = [Row(*line[:4], *map(number, line[4:8]), *line[8:]) for line in lines]
    return [Figures(bench, [row for row in rows if row.bench == bench]) for bench in distinct(rows, "bench")]


def machine():
    with open("/proc/cpuinfo") as file:
        model = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "?")
    return f"{os.cpu_count()} cores of {model}, {platform.system()} {platform.release()}"


def run():
    """When and where something is measured. A run of all benches says it once, to each of them."""
    return os.environ.get("KOEL_BENCH_RUN", f"{datetime.date.today()}, {machine()}")


def resident(process="self", field="VmRSS"):
    """Bytes of memory of a process."""
    with open(f"/proc/{process}/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field))

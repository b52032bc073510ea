#!/usr/bin/env python3
"""Makes all tables and pictures from the figures: of the CSV files or folders that are named, or else the committed ones.

    benches/draw.py [--print] [FILE OR FOLDER ...]

They lie beside their CSV files, each of which says of which benches it is. `--print` prints the tables as well. Pictures
want matplotlib.
"""

import pathlib, sys

import kit, tables

# The file of each table. Some benches have only a picture.
TABLES = {
    "alone": "alone.txt", "batches": "batches.txt", "dedup": "results.txt", "dropped": "dropped.txt", "durable": "table.md",
    "errors": "errors.txt", "files": "files.txt", "growth": "sets.txt", "hints": "hints.txt", "loads": "loads.txt",
    "partitioned": "partitioned.txt", "peers": "table.txt", "snapshots": "snapshots.txt", "waits": "waits.txt",
    "wheel": "table.md", "windows": "table.txt",
}  # fmt: skip
COMMITTED = [kit.TOP / folder for folder in ("benches/results", "benches/dedup", "python/benches/results", "redis/bench/results")]


def main(words):
    is_printed = "--print" in words
    paths = [pathlib.Path(word) for word in words if word != "--print"] or COMMITTED
    try:
        import pictures
    except ImportError as error:
        print(f"no pictures: {error}", file=sys.stderr)
        pictures = None
    files = [file for path in paths for file in (sorted(path.rglob("*.csv")) if path.is_dir() else [path])]
    for file in files:
        for figures in kit.read(file):
            if figures.bench in TABLES:
                table = getattr(tables, figures.bench)(figures)
                (file.parent / TABLES[figures.bench]).write_text(table)
                if is_printed:
                    print(table)
            if draw := getattr(pictures, figures.bench, None):
                draw(figures, file.parent)
    if not files:
        sys.exit("no CSV files in " + ", ".join(map(str, paths)))


if __name__ == "__main__":
    main(sys.argv[1:])

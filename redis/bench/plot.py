#!/usr/bin/env python3
"""Draws what run.py measured: results.csv of a folder becomes results.svg and results.md there."""

import csv, json, pathlib, subprocess, sys

COLOURS = {"keys": "#9aa5b1", "koel": "#d1495b", "bloom": "#30638e"}
NAMES = {"keys": "plain keys (SET, EXISTS, MSET)", "koel": "koel (CF.*)", "bloom": "RedisBloom (CF.*)"}
TITLES = {
    "cpu": "CPU time of the server's main thread, microseconds an item",
    "memory, resident": "memory that the server took, bytes an item",
    "ten items, beyond an empty key": "a set of ten items, bytes beyond an empty key",
}
# Of the workspace that has the program that draws.
WORKSPACE = pathlib.Path(__file__).parents[2] / "Cargo.toml"


def bar(row):
    value, low, high = (float(row[end]) if row.get(end) else None for end in ("value", "least", "most"))
    return {"value": value, "low": low, "high": high, "label": f"{value:.3g}", "colour": COLOURS[row["kind"]]}


def block(rows, title):
    """Groups of bars, one group for each work."""
    works = dict.fromkeys(row["of"] for row in rows)
    groups = [{"name": work, "cells": [[bar(row) for row in rows if row["of"] == work]]} for work in works]
    return {"bars": {"title": title, "rows": groups}}


def main(folder):
    with open(folder / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    drawn = {title: [row for row in rows if row["what"] == what] for what, title in TITLES.items()}
    kinds = dict.fromkeys(row["kind"] for row in rows)
    plot = {
        "title": "The module of koel beside plain keys",
        "about": ["A line reaches from the least that was measured to the most"],
        "width": 860,
        "rows": [block(some, title) for title, some in drawn.items() if some],
        "legend": [{"name": NAMES[kind], "style": {"colour": COLOURS[kind], "mark": "bar"}} for kind in kinds],
    }
    command = ["cargo", "run", "--quiet", "--locked", "--manifest-path", WORKSPACE, "-p", "koel-plot", "--", folder / "results.svg"]
    subprocess.run(command, input=json.dumps(plot), text=True, check=True)
    table = ["| what | of | kind | value | unit |", "|---|---|---|---|---|"]
    for row in rows:
        ends = f' ({row["least"]} to {row["most"]})' if row.get("least") else ""
        table.append(f'| {row["what"]} | {row["of"]} | {row["kind"]} | {row["value"]}{ends} | {row["unit"]} |')
    (folder / "results.md").write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))

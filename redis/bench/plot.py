#!/usr/bin/env python3
"""Draws what run.py measured: results.csv of a folder becomes results.svg and results.md there."""

import csv, pathlib, sys

COLORS = {"keys": "#9aa5b1", "koel": "#d1495b", "bloom": "#30638e"}
NAMES = {"keys": "plain keys (SET, EXISTS, MSET)", "koel": "koel (CF.*)", "bloom": "RedisBloom (CF.*)"}
WIDTH, LEFT, BAR, GAP = 860, 230, 18, 14


def text(x, y, what, anchor="start", weight="normal"):
    what = what.replace("&", "&amp;").replace("<", "&lt;")
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{what}</text>'


def bars(rows, title, top):
    """Groups of bars, one group for each work; returns the drawing and where it ends."""
    most = max(float(row["value"]) for row in rows)
    scale = (WIDTH - LEFT - 90) / most
    drawn, y = [text(16, top, title, weight="bold")], top + 18
    works = list(dict.fromkeys(row["of"] for row in rows))
    for work in works:
        group = [row for row in rows if row["of"] == work]
        drawn.append(text(LEFT - 10, y + BAR * len(group) / 2 + 5, work, "end"))
        for row in group:
            value = float(row["value"])
            width = max(1, value * scale)
            drawn.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 3}" fill="{COLORS[row["kind"]]}"/>')
            drawn.append(text(LEFT + width + 6, y + BAR - 6, f"{value:.3g}"))
            y += BAR
        y += GAP
    return drawn, y + 16


def main(folder):
    with open(folder / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    drawn, y = [], 60
    for what, title in {
        "cpu": "CPU time of the server's main thread, microseconds an item",
        "memory, resident": "memory that the server took, bytes an item",
        "ten items, beyond an empty key": "a set of ten items, bytes beyond an empty key",
    }.items():
        some = [row for row in rows if row["what"] == what]
        if some:
            more, y = bars(some, title, y)
            drawn += more
    x = 16
    for kind in dict.fromkeys(row["kind"] for row in rows):
        drawn.append(f'<rect x="{x}" y="16" width="14" height="14" fill="{COLORS[kind]}"/>')
        drawn.append(text(x + 20, 28, NAMES[kind]))
        x += 260
    style = "<style>text{font:13px sans-serif;fill:#222}</style>"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}">'
    paper = f'<rect width="{WIDTH}" height="{y}" fill="white"/>'
    (folder / "results.svg").write_text("\n".join([head, style, paper, *drawn, "</svg>"]) + "\n")
    table = ["| what | of | kind | value | unit |", "|---|---|---|---|---|"]
    for row in rows:
        ends = f' ({row["least"]} to {row["most"]})' if row.get("least") else ""
        table.append(f'| {row["what"]} | {row["of"]} | {row["kind"]} | {row["value"]}{ends} | {row["unit"]} |')
    (folder / "results.md").write_text("\n".join(table) + "\n")


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "."))

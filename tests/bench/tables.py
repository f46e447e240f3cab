"""The tables of whole models for READMEs, from what tests/bench/run has measured.

usage: tables.py FOLDER     with host.json, cortex-m4.json, cortex-m7.json, cortex-m55.json and aarch64.json, or some of them

Of this machine: how many times as fast as the fastest of those that are compared with, native / default. Of the Cortex-M4:
instructions a multiply-accumulate, fused, and estimated cycles of both arithmetics. Of all emulated processors, fused: estimated
cycles a multiply-accumulate in floats / integers, or instructions where there is no estimate.
"""
import json
import os
import re
import sys

CELLS = [(work, batch) for work in ("forward", "step") for batch in (1, 32)]


def number(value):
    return "" if value is None else f"{value:.0f}" if value >= 20 else f"{value:.1f}" if value >= 10 else f"{value:.2f}".lstrip("0")


def names(figures):
    """Of models that were measured, in the order of models.hpp."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "models.hpp"), encoding="utf-8") as header:
        known = re.findall(r'^    {"(\w+)"', header.read(), re.M)
    return [name for name in known if any(f"model.{name}." in key for key in figures)]


def against_fastest(figures, name, work, batch, build, threads):
    key = f"model.{name}.{work}.b{batch}.{build}.{threads}vs_"
    return min((value for of, value in figures.items() if of.startswith(key)), default=None)


def host(figures):
    for threads, title in (("", "one core"), ("threads2.", "two cores")):
        rows = {name: [[against_fastest(figures, name, *cell, build, threads) for build in ("native", "default")] for cell in CELLS]
                for name in names(figures)}
        rows = {name: cells for name, cells in rows.items() if any(value is not None for cell in cells for value in cell)}
        if rows:
            yield f"| {title} | " + " | ".join(f"{work}, {'one sequence' if batch == 1 else f'{batch} sequences'}" for work, batch in CELLS) + " |"
            yield "|---" * 5 + "|"
            yield from (f"| {name} | " + " | ".join(" / ".join(map(number, cell)) for cell in cells) + " |" for name, cells in rows.items())
            yield ""


def board(figures):
    yield "| Cortex-M4 | forward: instructions | cycles | cycles, `unfused` | step: instructions | cycles | cycles, `unfused` |"
    yield "|---" * 7 + "|"
    for name in names(figures):
        keys = [f"{prefix}model.{name}.{work}.{what}_per_mac" for work in ("forward", "step")
                for prefix, what in (("", "instructions"), ("", "cycles"), ("unfused.", "cycles"))]
        yield f"| {name} | " + " | ".join(number(figures.get(key)) for key in keys) + " |"
    yield ""


def processors(figures_of):
    """Floats / integers. `figures_of`: processor -> its figures."""
    yield "| floats / integers | " + " | ".join(f"{processor}: {work}" for processor in figures_of for work in ("forward", "step")) + " |"
    yield "|---" * (1 + 2 * len(figures_of)) + "|"
    of_all = {key: value for figures in figures_of.values() for key, value in figures.items()}
    for name in names(of_all):
        cells = []
        for figures in figures_of.values():
            what = "cycles" if any(".cycles" in key for key in figures) else "instructions"
            for work in ("forward", "step"):
                cells.append([figures.get(f"model.{name}.{form}{work}.{what}_per_mac") for form in ("", "int8_")])
        yield f"| {name} | " + " | ".join(" / ".join(map(number, cell)) if any(cell) else "" for cell in cells) + " |"
    yield ""


def main():
    measured = {}
    for name in ("host", "cortex-m4", "cortex-m7", "cortex-m55", "aarch64"):
        path = os.path.join(sys.argv[1], f"{name}.json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as figures:
                measured[name] = json.load(figures)
    for name, table in (("host", host), ("cortex-m4", board)):
        if name in measured:
            print("\n".join(table(measured[name])))
    if emulated := {name: figures for name, figures in measured.items() if name != "host"}:
        print("\n".join(processors(emulated)))


main()

"""fit.html: what fit.py found with takes of users, as one page without scripts, light and dark."""
import dataclasses
import html
import math
import statistics

from .building import filled
from .fit_data import Trained, front, percent

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 360, 240, 44, 348, 12, 200


def share(values):
    return 100 * statistics.fmean(values)


@dataclasses.dataclass(frozen=True)
class Point:
    """A training with its accuracies, what it costs, and its type."""
    trained: Trained
    x: float
    text: str
    type: str
    chosen: bool


def best_of(points):
    return front(points, lambda point: point.x, lambda point: point.trained.score)


def steps(low, high, count):
    """Round numbers from the last below `low` to the first above `high`."""
    rough = max(high - low, 1e-9 * max(abs(high), 1)) / count
    power = 10 ** math.floor(math.log10(rough))
    size = power * next(factor for factor in (1, 2, 5, 10) if rough <= factor * power * 1.001)
    return [size * i for i in range(math.floor(low / size + 1e-9), math.ceil(high / size - 1e-9) + 1)]


def chart(points, before, x_name, unit):
    """An <svg> of the new user's accuracy; a line joins the front, and dashes are the accuracy before."""
    accuracies = [share(point.trained.own) for point in points] + [share(before.own)]
    ys, xs = steps(min(accuracies), max(accuracies), 4), steps(0, max(point.x for point in points) / unit, 4)

    def x(value):
        return f"{LEFT + (RIGHT - LEFT) * value / xs[-1]:.1f}"

    def y(value):
        return f"{BOTTOM - (BOTTOM - TOP) * (value - ys[0]) / (ys[-1] - ys[0]):.1f}"

    def at(point):
        return x(point.x / unit), y(share(point.trained.own))

    def text(at_x, at_y, content, anchor="middle"):
        return f'<text x="{at_x}" y="{at_y}" text-anchor="{anchor}" font-size="11" font-family="sans-serif" fill="#59636e">{html.escape(content)}</text>'

    def line(kind, value, color, more=""):
        return f'<line class="{kind}" x1="{LEFT}" y1="{y(value)}" x2="{RIGHT}" y2="{y(value)}" stroke="{color}"{more}/>'
    lines = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="accuracy against {html.escape(x_name)}">']
    for value in ys:
        lines += [line("grid", value, "#d5dbe1"), text(LEFT - 5, float(y(value)) + 4, f"{value:g} %", "end")]
    lines += [text(x(value), BOTTOM + 15, f"{value:g}") for value in xs] + [text((LEFT + RIGHT) / 2, BOTTOM + 33, x_name)]
    lines.append(line("base", share(before.own), "#59636e", ' stroke-dasharray="4 3"'))
    best = best_of(points)
    path = "".join(f"{'H' + at(point)[0] + ' V' + at(point)[1] if i else 'M' + ' '.join(at(point))} " for i, point in enumerate(best))
    lines.append(f'<path class="steps" d="{path.strip()}" fill="none" stroke="#1f5fbf" stroke-width="1.5"/>')
    for point in [*(point for point in points if point not in best), *best]:
        kind, color = ("front", "#1f5fbf") if point in best else ("other", "#a0a8b0")
        place = 'cx="{}" cy="{}"'.format(*at(point))
        lines.append(f'<circle class="{kind}" {place} r="3.5" fill="{color}"><title>{html.escape(f"{percent(point.trained.own)}: {point.text}: {point.type}")}</title></circle>')
        lines += [f'<circle class="best" {place} r="7" fill="none" stroke="#d9822b" stroke-width="2"/>'] * point.chosen
    return "\n".join([*lines, "</svg>"])


def table(points, name, form):
    rows = [f"<tr><th>new user</th><th>everybody else</th><th>{name}</th><th>training</th></tr>"]
    best = best_of(points)
    for point in [point for point in points if point.chosen and point not in best] + best[::-1]:
        cells = "".join(f"<td>{text}</td>" for text in (percent(point.trained.own), percent(point.trained.others), format(point.x, form)))
        rows.append(f"<tr>{cells}<td>{html.escape(point.text)}{' <b>(chosen)</b>' * point.chosen}<br/><code>{html.escape(point.type)}</code></td></tr>")
    return '<div class="wide"><table>' + "\n".join(rows) + "</table></div>"


def page_of(name, facts, before, ram, times, unit, short):
    """The text of fit.html. `facts`: sentences on the chosen one; `ram`, `times`: points; `short`: what does not fit, and by how much."""
    title = f"Ways to train {name}"
    chosen = next(point for point in ram if point.chosen)
    sections = {"The best within the limits": [f"<p>{html.escape(text[0].upper() + text[1:])}.</p>" for text in map(str.strip, [chosen.text, *facts[1:]])],
                "Accuracy against RAM": ['<p class="soft">Accuracy on a new user, of each training with its smallest plan. The line joins those that no other beats '
                                         "with less RAM. The ring is the chosen one; dashes are the model as it was.</p>", chart(ram, before, "RAM, KB", 1024),
                                         table(ram, "RAM", ",")],
                "Accuracy against time": [f'<p class="soft">A step with one sequence, by estimated cycles, of trainings that were measured, each with the plan that takes '
                                          "the least time within the RAM.</p>", chart(times, before, f"step, {unit}", 1), table(times, unit, ",.1f")] if times else
                ['<p class="soft">Not known: this machine counts no instructions of the emulator.</p>'],
                "What does not fit": ["<ul>", *(f"<li>{html.escape(text)}</li>" for text in short), "</ul>"] if short else []}
    page = ['<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8"/>\n<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            f"<title>{html.escape(title)}</title>\n<style>\n{filled('fit_page.css')}</style>\n</head>\n<body>\n<h1>{html.escape(title)}</h1>"]
    page += [f"<section><h2>{name}</h2>\n" + "\n".join(parts) + "\n</section>" for name, parts in sections.items() if parts]
    return "\n".join([*page, "</body>\n</html>\n"])

"""Accuracy of ways to train, from takes of users, for fit.py: trained on this machine, with the bits of the device.

Each user is new once: a candidate starts at the folder's weights, learns from a few takes of this user, and is tested with the user's other
takes and with everybody else's. Ways with labels learn from the takes that have one, others from all. Candidates and learning rates are halved successively, with ever more passes over the takes; what no other
beats with less RAM stays. Results are cached by content. Needs no PyTorch."""
import concurrent.futures
import dataclasses
import hashlib
import json
import math
import os
import re
import statistics
import subprocess
import sys
import threading
from array import array

from . import safetensors_file
from .building import configure, filled, run
from .errors import CheckFailed

CODES = {"F32": "f", "F64": "d", "I64": "q", "I32": "i", "I16": "h", "I8": "b", "U8": "B"}
# The numbers that are tried: ridges of a head in closed form, else learning rates.
RATES = {"SGD": (0.01, 0.03, 0.1, 0.3, 1.0), "closed form": (0.1, 1.0, 10.0, 100.0, 1000.0), "": (0.001, 0.003, 0.01, 0.03, 0.1)}
FORWARD_ONLY_PASSES, INFOMAX_PASSES = 4, 2  # for one with backward and labels
UNLABELED = -1  # the label of a take without one
OBJECTIONS = ("", "too few takes are clear", "almost all takes are clear", "classes are not equally frequent", "a head changes clear takes")  # attune::Objection
TESTED = 250  # takes at most of the new user, and of everybody else, that a training is tested with
PARTS = (4, 2, 1)  # of the passes, in the rounds of the halving
BATCHES = (8, 4, 16)  # takes of a step: the first round has the first of them
LARGEST_BATCH = 1 << 16  # of the trainers of a PC, which take batches of any size


def read(path, wanted):
    """{name: (shape, numbers)} of a .safetensors file's tensors with these names."""
    try:
        found = {name: entry for name, entry in safetensors_file.read(path)[0].items() if name in wanted}
    except OSError as problem:
        raise CheckFailed(f"{path}: {problem.strerror}") from problem
    unknown = next((name for name, (dtype, *_) in found.items() if dtype not in CODES), None)
    if unknown is not None:
        raise CheckFailed(f"{path}: {unknown} has numbers of {found[unknown][0]}; give one of {', '.join(CODES)}")
    return {name: (shape, array(CODES[dtype], bytes(data))) for name, (dtype, shape, data) in found.items()}


def file_of(tensors, shapes=()):
    """A .safetensors file of {name: numbers} as F32 or I32, [count] unless `shapes` says another."""
    header = {name: ("F32" if numbers.typecode == "f" else "I32", dict(shapes).get(name, [len(numbers)])) for name, numbers in tensors.items()}
    return safetensors_file.beginning(header) + b"".join(numbers.tobytes() for numbers in tensors.values())


def write(path, tensors, shapes=()):
    """Such a file. One that has them already keeps its time."""
    data = file_of(tensors, shapes)
    if not path.is_file() or path.read_bytes() != data:
        path.write_bytes(data)


@dataclasses.dataclass(frozen=True)
class Run:
    """A new user's takes to learn from, in this order, others of theirs, and everybody else's: numbers of takes."""
    seed: int
    user: int
    takes: tuple
    own: tuple
    others: tuple
    labeled: int  # of the takes to learn from, in each run at least

    def words(self):
        return [self.seed, len(self.takes), len(self.own), len(self.others), *self.takes, *self.own, *self.others]


class Takes:
    """What --data has: x, y, lengths and users, checked against the folder's model."""

    def __init__(self, path, folder, vocabulary=math.inf):
        found = read(path, {"x", "y", "y_test", "user", "length"})
        for name in ("x", "y"):
            if name not in found and not (name == "y" and "y_test" in found):
                raise CheckFailed(f"{path} has no tensor {name}: give x, y and, by option, length and user; without labels y_test instead of y, the classes to be tested with")
        model = read(folder / "check.safetensors", {"input", "output"})
        (_, *row), numbers = model["input"]
        _, *answer = model["output"][0]
        shape, x = found["x"]
        users = found["user"][1] if "user" in found else None
        if math.prod(answer[:-1]) != 1:
            raise CheckFailed(f"the model answers {answer} a take, and --data has one class for each")
        if not shape or [size for size in shape[1:] if size != 1] != [size for size in row if size != 1]:
            raise CheckFailed(f"{path}: x is {shape}, and the model takes [takes, {', '.join(map(str, row))}]; the folder's README says how its rows are made")
        self.path, self.count, self.size, classes = path, shape[0], math.prod(row), answer[-1]
        for name in [name for name in ("y", "y_test", "user", "length") if name in found]:
            if len(found[name][1]) != self.count or found[name][1].typecode in "fd":
                raise CheckFailed(f"{path}: {name} is to have a whole number for each of the {self.count} takes of x")
        given, wanted = ("floats" if of.typecode in "fd" else "whole numbers" for of in (x, numbers))
        if given != wanted:
            raise CheckFailed(f"{path}: x has {given}, and the model takes {wanted}")
        try:
            self.x = array("f" if wanted == "floats" else "i", x)
        except OverflowError as problem:
            raise CheckFailed(f"{path}: x has a number that is too large for 32 bits") from problem
        self.tokens = row[0]
        self.length = self.padded(found["length"][1]) if "length" in found else None
        bad = next((i for i, value in enumerate(self.x) if not math.isfinite(value)), None)
        if bad is not None:
            raise CheckFailed(f"{path}: x has numbers that are NaN or infinite, first in take {bad // self.size}")
        bad = next((i for i, value in enumerate(self.x) if wanted != "floats" and not 0 <= value < vocabulary), None)
        if bad is not None:
            raise CheckFailed(f"{path}: take {bad // self.size} has the id {self.x[bad]}, and the model takes ids from 0 " + (f"to {vocabulary - 1}" if vocabulary < math.inf else "on"))
        for name, (_, labels) in found.items():
            bad = next((i for i, label in enumerate(labels) if not UNLABELED <= label < classes), None) if name in ("y", "y_test") else None
            if bad is not None:
                raise CheckFailed(f"{path}: take {bad} has the label {labels[bad]} in {name}, and the model tells classes 0 to {classes - 1}; {UNLABELED} is no label")
        self.y = array("i", found["y"][1] if "y" in found else [UNLABELED] * self.count)  # what the device is told
        self.y_test = array("i", found["y_test"][1]) if "y_test" in found else self.y
        self.classes = sorted({*self.y_test} - {UNLABELED})
        if not self.classes:
            raise CheckFailed(f"{path}: no take has a class to be tested with, in y_test or else in y")
        if len(self.classes) == 1:
            raise CheckFailed(f"{path}: all takes are of class {self.classes[0]}, so whatever answers it always would be right; give takes of other classes, too")
        self.users = {user: [i for i in range(self.count) if users[i] == user] for user in sorted(set(users))} if users else {None: range(self.count)}
        if users and len(self.users) == 1:
            raise CheckFailed(f"{path}: all takes are of one user, and nobody is left to tell what is forgotten; leave user out")

    def padded(self, lengths):
        """Tokens in use of each take. The others become zeros, whatever they were."""
        width = self.size // self.tokens
        for i, length in enumerate(lengths):
            if not 1 <= length <= self.tokens:
                raise CheckFailed(f"{self.path}: take {i} has the length {length}, and a take of the model has 1 to {self.tokens} tokens")
            self.x[i * self.size + length * width:(i + 1) * self.size] = array(self.x.typecode, [0] * ((self.tokens - length) * width))
        return array("i", lengths)

    def tensors(self, takes=None):
        """What a program trains with, of these takes or all."""
        takes = range(self.count) if takes is None else takes
        x = array(self.x.typecode)
        for take in takes:
            x.extend(self.x[take * self.size:(take + 1) * self.size])
        words = {"y": self.y, "y_test": self.y_test, **({"length": self.length} if self.length else {})}
        return {"x": x, **{name: array("i", [numbers[take] for take in takes]) for name, numbers in words.items()}}

    def runs(self, count, seeds, batch=None, new=None):
        """Every user, or `new` alone, is new once for each seed, which chooses the takes to learn from: `count` of each class, those with a label first, and at
        most as many whose class nobody knows."""
        of = {user: {label: [i for i in own if self.y_test[i] == label] for label in self.classes} for user, own in self.users.items()}
        if new is not None and new not in self.users:
            raise CheckFailed(f"{self.path} has no user {new}; " + ("there are: " + ", ".join(map(str, self.users)) if None not in self.users else "it has no users"))
        learning = self.users if new is None else [new]
        for user in learning:
            takes = of[user]
            who = f"{self.path}: user {user}" if user is not None else f"{self.path}"
            for label, own in takes.items():
                if len(own) <= count:
                    raise CheckFailed(f"{who} has {len(own) or 'no'} takes of class {label}: to learn from {count} and be tested takes {count + 1}")
        def tested(i):
            return self.y_test[i] != UNLABELED

        def turned(takes, first, chosen):
            """The chosen ones, from another one on for each seed."""
            own = list(filter(chosen, takes))
            return own[first % len(own):] + own[:first % len(own)] if own else []
        result = []
        for seed in range(seeds):
            for user in learning:
                known = [turned(own, seed * count, lambda i: self.y[i] != UNLABELED) + turned(own, seed * count, lambda i: self.y[i] == UNLABELED)
                         for own in of[user].values()]
                most = count * len(self.classes)
                takes = [own[i] for i in range(count) for own in known] + turned(self.users[user], seed * most, lambda i: not tested(i))[:most]
                own = sorted(filter(tested, set(self.users[user]) - set(takes)))
                others = [i for other, theirs in self.users.items() if other != user for i in filter(tested, theirs)]
                result.append(Run(seed + 1, user, tuple(takes), spread(own), spread(others), sum(self.y[i] != UNLABELED for i in takes)))
        labeled = min(run.labeled for run in result)
        if labeled == 0 and any(run.labeled for run in result):
            user = next(run.user for run in result if not run.labeled)
            raise CheckFailed(f"{self.path}: user {user} has no label to learn from, and others have; label some takes of each user, or none")
        if 0 < labeled < (batch or 1):
            raise CheckFailed(f"{self.path}: {labeled} takes with a label to learn from are less than a batch of {batch}")
        return [dataclasses.replace(run, labeled=labeled) for run in result]


def batch_sizes(batch, labeled):
    """(the sizes of a batch that are tried, what was left out and why)."""
    if batch or not labeled:
        return (batch or 1,), []
    sizes = tuple(size for size in BATCHES if size <= labeled) or (labeled,)
    return sizes, ["batches of 1: updates in backward end with the same bits, and take less RAM", *(f"batches of {size}: {labeled} takes have a label" for size in BATCHES if size > labeled)]


def spread(takes):
    """At most as many as are tested, evenly from all."""
    count = min(len(takes), TESTED)
    return tuple(takes[i * len(takes) // count] for i in range(count))


@dataclasses.dataclass(frozen=True)
class Trained:
    """Accuracies of a candidate, one for each run, and the hash of its parameters after the first."""
    own: tuple
    others: tuple
    hash: str
    stopped: str = ""
    objections: tuple = ()  # of the guard of a head without labels: a number for each run that it ended

    @property
    def score(self):
        return (-1, -1) if self.stopped else (statistics.fmean(self.own), statistics.fmean(self.others) if self.others else 0)


def percent(values):
    """Mean and, of several, standard deviation."""
    return f"{100 * statistics.fmean(values):.1f}" + (f" ± {100 * statistics.stdev(values):.1f}" if len(values) > 1 else "") + " %" if values else "–"


@dataclasses.dataclass(frozen=True)
class Way:
    """What is trained, at which rate or ridge, for how many passes over the takes."""
    candidate: object
    rate: float
    passes: int

    @property
    def key(self):
        """The candidate, whatever its batch."""
        return self.candidate.in_batches(1)

    @property
    def setting(self):
        return f"{self.candidate.number.replace('_', ' ')} {self.rate:g}"

    def steps(self, run):
        """Of a head in closed form: one for each take, whatever the passes. Without labels, a step takes them all."""
        if self.candidate.optimizer == "closed form":
            return min(1, self.passes) * (1 if self.candidate.unlabeled else run.labeled)
        if self.candidate.unlabeled:
            return self.passes * INFOMAX_PASSES
        passes = self.passes * (FORWARD_ONLY_PASSES if self.candidate.optimizer == "forward only" else 1)
        return max(min(1, passes), passes * run.labeled // self.candidate.batch)


def front(ways, cost, gain):
    """Those that no other beats at a lower cost, or equals; the cheapest first."""
    best, kept = None, []
    for way in sorted(ways, key=lambda way: (cost(way), [-part for part in gain(way)])):
        if best is None or gain(way) > best:
            best = gain(way)
            kept.append(way)
    return kept


def name_of(key):
    return hashlib.sha256(json.dumps(key).encode()).hexdigest()


class Cache:
    """Results by content, in a file of lines, each kept as soon as it is known."""

    def __init__(self, path):
        self.path, self.known, self.lock = path, {}, threading.Lock()
        for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
            try:
                entry = json.loads(line)
                self.known[entry["key"]] = entry["result"]
            except (ValueError, KeyError, TypeError):  # half a line, as where the power failed
                continue

    def has(self, key):
        return name_of(key) in self.known

    def get(self, key, make=None):
        if make and not self.has(key):
            self.put(key, make())
        return self.known[name_of(key)]

    def put(self, key, result):
        with self.lock, open(self.path, "a", encoding="utf-8") as file:
            self.known[name_of(key)] = result
            file.write(json.dumps({"key": name_of(key), "result": result}) + "\n")


def main_of(names):
    declare = "attune_torch::Trained {}(const attune_torch::Takes&, const attune_torch::Run&, const attune_torch::Setting&);"
    return filled("fit_trainings.cpp", declarations="\n".join(map(declare.format, names)), functions=", ".join(names))


def setting_of(way, run):
    """Arguments of a program."""
    return ["--steps", way.steps(run), "--batch", way.candidate.batch, "--rate", round(way.rate * 1e6)]


class Trainings:
    """Trains candidates of a search (fit.Search) on the runs of a file."""

    def __init__(self, search, takes, runs, batch=None):
        """`batch`: this size alone, instead of those that are tried."""
        self.search, self.takes, self.runs = search, takes, runs
        self.batches, left_out = batch_sizes(batch, runs[0].labeled)
        search.left_out += left_out
        self.place = {}  # of a candidate in the program
        self.program = None
        self.known = Cache(search.home / "accuracy.jsonl")
        self.data = hashlib.sha256(b"".join(numbers.tobytes() for numbers in takes.tensors().values())).hexdigest()
        self.content = {}  # of a base

    def key(self, way, run):
        base = way.candidate.base
        if base not in self.content:
            self.content[base] = self.search.content(base, ".hpp") + self.data
        return [self.content[base], self.function(way.candidate)[1], way.candidate.batch, way.rate, way.steps(run), run.words()]

    def function(self, candidate, batch=None):
        """(its name, its source). Its trainer takes batches of any size, or of this one alone."""
        scope = self.search.scope(candidate)
        batch = batch or (LARGEST_BATCH if candidate.takes_batches else candidate.batch)
        trainer, start = candidate.trainer(scope, self.search.loss, batch), candidate.start(scope)
        name = "training_" + hashlib.sha256((trainer + start).encode()).hexdigest()[:12]
        return name, filled("fit_training.cpp", function=name, trainer=trainer, start=start, scope=scope, mask=self.search.mask)

    def build(self, candidates, watch):
        """One program for all; what is trained shares a source."""
        write(self.search.home / "takes.safetensors", {**self.takes.tensors(), "runs": array("i", [word for run in self.runs for word in run.words()])})
        sources = {}
        for candidate in candidates:
            header = self.search.header_of(candidate.base)
            file = re.sub(r"\W+", "_", f"train_{candidate.trains}_{header}") + ".cpp"
            sources.setdefault(file, [f'#include <attune_torch/takes.hpp>\n\n#include "{header}"\n']).append(self.function(candidate)[1])
        for file, texts in sources.items():
            self.search.write(file, "\n".join(texts))
        self.search.write("train.cpp", main_of([self.function(candidate)[0] for candidate in candidates]))
        self.search.write("train.cmake", f"fit_program(train takes.safetensors train.cpp {' '.join(sources)})\n")
        build = configure(self.search.home, self.search.root, "host")
        run(["cmake", "--build", build, "--target", "train"], "the build of the trainings", watch)
        self.place = {candidate.in_batches(1): place for place, candidate in enumerate(candidates)}
        self.program = build / "train"

    def arguments(self, way, first, count):
        return ["--candidate", self.place.get(way.key, 0), *setting_of(way, self.runs[first]), "--run", first, "--runs", count]

    def train(self, way, count):
        """Of the first runs. What is not known yet is trained, and kept as soon as it is known."""
        missing = next((i for i in range(count) if not self.known.has(self.key(way, self.runs[i]))), count)
        if missing < count:
            words = " ".join(map(str, self.arguments(way, missing, count - missing)))
            with subprocess.Popen([self.program], stdout=subprocess.PIPE, text=True, env={**os.environ, "ATTUNE_ARGUMENTS": words}) as process:
                for line in process.stdout:
                    number, own, others, hash, objection, text = line.split(maxsplit=6)[1:]
                    self.known.put(self.key(way, self.runs[int(number)]), [int(own), int(others), hash, text.strip(), int(objection)])
            if process.returncode:
                raise CheckFailed(f"the training of '{way.candidate}' ended with {process.returncode}")
        results = [self.known.get(self.key(way, own)) for own in self.runs[:count]]
        stopped = next((text for *_, text, _ in results if text != "ok"), "")
        return Trained(tuple(own / len(run.own) for (own, *_), run in zip(results, self.runs)),
                       tuple(others / len(run.others) for (_, others, *_), run in zip(results, self.runs) if run.others), results[0][2], stopped,
                       tuple(objection for *_, objection in results if objection))

    def first(self, way):
        """(new user, everybody else, hash) of the first run, as takes that are recognized."""
        return tuple(self.known.get(self.key(way, self.runs[0]))[:3])

    def train_all(self, ways, count, what, progress):
        """{way: Trained}, on all cores."""
        done = {}
        pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
        try:
            waiting = {pool.submit(self.train, way, count): way for way in ways}
            for future in concurrent.futures.as_completed(waiting):
                done[waiting[future]] = future.result()
                progress(f"{what}: {len(done)} of {len(ways)} trainings")
        finally:
            pool.shutdown(cancel_futures=True)
        return {way: done[way] for way in ways}

    def halve(self, candidates, ram, passes, progress):
        """{way: Trained} of the last round, and what was dropped before with its accuracy then. `ram`: least bytes of a candidate."""
        users = len({run.user for run in self.runs})
        ways = [Way(candidate.in_batches(self.batches[0]), rate, 0) for candidate in candidates for rate in RATES.get(candidate.optimizer, RATES[""])]
        dropped = {}
        for part in PARTS:
            last = part == PARTS[-1]
            ways += self.other_batches(ways, found) if part == PARTS[1] else []
            lengths = sorted({max(1, passes // part), max(1, passes // (2 * part))} if last else {max(1, passes // part)})
            ways = [dataclasses.replace(way, passes=length) for way in ways for length in lengths]
            ways = list({(way.candidate, way.rate, way.steps(self.runs[0])): way for way in reversed(ways)}.values())[::-1]
            found = self.train_all(ways, len(self.runs) if last else users, f"{lengths[-1]} passes over the takes", progress)
            if last:
                return {way: trained for way, trained in found.items() if not trained.stopped}, dropped
            best = sorted(ways, key=lambda way: ([-part for part in found[way].score], ram[way.key]))[:(len(ways) + 1) // 2]
            kept = {*best, *front(ways, lambda way: ram[way.key], lambda way: found[way].score)}
            dropped.update({way: found[way] for way in ways if way not in kept})
            ways = [way for way in ways if way in kept and not found[way].stopped]

    def other_batches(self, ways, found):
        """The best way of each candidate, with the other sizes of a batch."""
        best = {}
        for way in ways:
            if way.key not in best or found[way].score > found[best[way.key]].score:
                best[way.key] = way
        return [dataclasses.replace(way, candidate=way.candidate.in_batches(size)) for way in best.values() if way.candidate.takes_batches for size in self.batches[1:]]

    def first_takes(self):
        """A file of the takes of the first run, and of the run, for a board."""
        first = self.runs[0]
        used = sorted({*first.takes, *first.own, *first.others})
        place = {take: i for i, take in enumerate(used)}
        moved = dataclasses.replace(first, **{part: tuple(place[i] for i in getattr(first, part)) for part in ("takes", "own", "others")})
        return file_of({**self.takes.tensors(used), "runs": array("i", moved.words())})

    def on_board(self, way, candidate):
        """(new user, everybody else, hash) of the first run on the emulated board, by a candidate with any tape."""
        search, first = self.search, self.runs[0]
        (search.home / "board.safetensors").write_bytes(self.first_takes())
        name, source = self.function(candidate, way.candidate.batch)
        search.write("board.cpp", main_of([name]) + f"\n{search.include(candidate)}\n\n" + source)
        text = (search.home / "train.cmake").read_text(encoding="utf-8").splitlines()[0]
        search.write("train.cmake", f"{text}\nfit_program(board board.safetensors board.cpp)\n")
        run(["cmake", "--build", search.build, "--target", "board"], f"the build of '{candidate}'")
        words = map(str, setting_of(way, first))
        done = subprocess.run([search.root / "ports/run", search.target, search.build / "board.elf", *words], capture_output=True, text=True)
        found = re.search(r"^trained 0 (\d+) (\d+) (\w+) \d ok$", done.stdout, re.M)
        if done.returncode or not found:
            raise CheckFailed(f"'{candidate}' on {search.target} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return int(found[1]), int(found[2]), found[3]


class Progress:
    """A line on a terminal that is written over; elsewhere a line for each new thing."""

    def __init__(self, stream=sys.stderr):
        self.stream, self.last = stream, ""

    def __call__(self, text):
        what = text.partition(":")[0]
        if self.stream.isatty():
            self.stream.write(f"\r\x1b[K{text}")
        elif what != self.last:
            self.stream.write(f"{what}\n")
        self.last = what
        self.stream.flush()

    def end(self):
        if self.stream.isatty() and self.last:
            self.stream.write("\r\x1b[K")

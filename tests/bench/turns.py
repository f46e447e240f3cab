"""Comparing speeds on a machine that is never quite idle: contenders take turns, and what counts is the median ratio.

A contender is a function of how often to do its work; it returns how long that took.
"""
import statistics
import time


def timed(calls, clock=time.perf_counter):
    """The contender of a function that does its work so often."""
    def seconds(count):
        start = clock()
        calls(count)
        return clock() - start
    return seconds


def repeated(work, clock=time.perf_counter):
    """The same of one that does it once."""
    def calls(count):
        for _ in range(count):
            work()
    return timed(calls, clock)


def calibrate(contender, turn):
    """How many calls make a turn, and how long that turn takes."""
    calls = 1
    while (seconds := contender(calls)) < turn:
        calls = int(calls * min(10.0, 1.2 * turn / max(seconds, 1e-9))) + 1
    return calls, seconds


def race(contenders, *, turn, budget, fewest, most, pause=0.0, warm=0.0):
    """Seconds of a call, of each contender in each round; A B C A B C …

    turn     seconds of work in a turn, at least
    budget   seconds for all turns, about; but `fewest` rounds, and `most`
    pause    seconds before a turn: threads of the one before that look out for work then sleep
    warm     seconds of work between pause and turn that do not count: a system takes some milliseconds to find
             threads that it wakes cores of their own
    """
    calls, whole = zip(*(calibrate(contender, turn) for contender in contenders))
    before = [int(count * warm / seconds) for count, seconds in zip(calls, whole)]
    rounds = int(min(most, max(fewest, budget / sum(whole))))
    times = [[] for _ in contenders]
    for _ in range(rounds):
        for contender, count, first, of in zip(contenders, calls, before, times):
            time.sleep(pause)
            if first:
                contender(first)
            of.append(contender(count) / count)
    return times


def ratio(slower, faster):
    """How many times longer the one took than the other, by their times in each round."""
    return statistics.median(slow / fast for slow, fast in zip(slower, faster))

#!/usr/bin/env python3
"""The time of a training step on n ranks: measured, and what a model says of more of them and of other networks.

  tests/bench/ranks.py FIGURES      lines of tests/bench/ranks.cpp, of several runs

A step of a batch of B sequences on n ranks, with gradients of G bytes in chunks of c:

  T(n) = b·s + max(b·G/a, 2·G/w) + (n − 1)·(2·(l + c/w) + b·c/a) + u,   b = ⌈B/n⌉

s: forward and backward of a sequence. a: bytes a second of adding a gradient. l, w: latency and bytes a second of a link.
u: the optimizer. Ranks compute b sequences each at the same time; then sums pass through the ring chunk after chunk: every
rank adds b gradients, or waits for links that carry G twice, whichever is longer, behind a first chunk that has to come
round twice. T(1) = B·s + B·G/a + u.
"""
import statistics
import sys
from math import ceil

CHUNK = 1 << 15  # DistributedOptions::chunk_bytes
# Assumed, not measured: latency of a message in seconds, bytes a second.
NETWORKS = {"1 Gbit/s, 50 us": (50e-6, 117e6), "10 Gbit/s, 20 us": (20e-6, 1.17e9), "100 Gbit/s, 3 us": (3e-6, 11.7e9)}
RANKS = (2, 4, 8, 16, 32)


def step_time(ranks, batch, gradient, sequence, add, update, latency, bandwidth):
    share = ceil(batch / ranks)
    if ranks == 1:
        return batch * (sequence + add) + update
    chunk = min(CHUNK, gradient)
    first = 2 * (latency + chunk / bandwidth) + share * add * chunk / gradient
    return share * sequence + max(share * add, 2 * gradient / bandwidth) + (ranks - 1) * first + update


def read(path):
    steps, parts, ring = {}, {}, []
    for line in open(path):
        kind, *words = line.split()
        if kind == "step":
            name, batch, gradient, ranks, *seconds = words
            of_ranks = steps.setdefault((name, int(batch), int(gradient)), {}).setdefault(int(ranks), [])
            of_ranks.append([float(word) for word in seconds])
        elif kind == "parts":
            parts.setdefault(words[0], []).append([float(word) for word in words[1:]])
        elif kind == "ring":
            ring.append([float(word) for word in words])
    return steps, parts, ring


def medians(rows):
    return [statistics.median(column) for column in zip(*rows)]


def main():
    steps, parts, ring = read(sys.argv[1])
    latencies, bandwidths = zip(*ring)
    latency, bandwidth = min(latencies), max(bandwidths)  # what load makes of them is not the link's
    print(f"between two ranks of this machine, at best: {latency * 1e6:.1f} us, {bandwidth / 1e9:.2f} GB/s")
    print("\na step on one rank; on several, one thread each: times as fast as that / the same of work for which no "
          "rank waits, which is what the processors have to give / modeled, with a processor for each rank and no other load")
    rows = []
    for (name, batch, gradient), times in steps.items():
        of_processor, add, update = medians(parts[name])
        step, without = medians(times[1])
        rows.append((name, batch, gradient, max((of_processor - update) / batch - add, 0), add, update))
        said = [f"{name:10} batch {batch}, {gradient:7} bytes, {step * 1e3:7.3f} ms, {of_processor * 1e3:.3f} of a processor, {add * 1e6:4.1f} us to add a gradient:"]
        for ranks in sorted(times):
            if ranks > 1:
                model = step_time(1, *rows[-1][1:], 0, 1) / step_time(ranks, *rows[-1][1:], latency, bandwidth)
                of_ranks = medians(times[ranks])
                said.append(f"{ranks} ranks {step / of_ranks[0]:.2f} / {without / of_ranks[1]:.2f} / {model:.2f}")
        print("  ".join(said))
    print("\nmodelled, with the processor's time of a step on one rank: times as fast as that")
    print(f"{'':10} {'batch':>6} {'network':17}" + "".join(f"{f'n = {ranks}':>8}" for ranks in RANKS))
    for name, batch, *rest in rows:
        for large in (batch, 8 * batch):
            one = step_time(1, large, *rest, 0, 1)
            for network, (message, rate) in NETWORKS.items():
                print(f"{name:10} {large:6} {network:17}" +
                      "".join(f"{one / step_time(ranks, large, *rest, message, rate):8.2f}" for ranks in RANKS))


if __name__ == "__main__":
    main()

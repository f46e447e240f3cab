#!/usr/bin/env python3
"""Checks what the benchmark counts and writes: multiply-accumulates of whole models against their tensors, the keys and goals
of figures, and the command that measures growth. Times nothing that counts. Ends with `N passed, N failed`.
"""
import json
import os
import re
import subprocess
import sys
import tempfile

BENCH = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(BENCH))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests"))
from checks import check, close  # noqa: E402

COMPILER = (os.environ.get("CXX", "c++"), "-std=c++20", "-O0", "-ffp-contract=off", f"-I{ROOT}/lib", "-isystem", "/usr/include/eigen3")
subprocess.run([os.path.join(ROOT, "cmake/bootstrap.sh"), "build"], check=True)
CLASSIFIER, LANGUAGE, ATTENTION = range(3)


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def models(folder):
    """{name: description}, of a quick build."""
    program = os.path.join(folder, "describe_models")
    run(*COMPILER, f"{BENCH}/describe_models.cpp", "-o", program)
    return {name: json.loads(text) for name, text in (line.split(" ", 1) for line in run(program).splitlines())}


def weights(model):
    """[(times that a sequence goes through it, rows · cols, whether it takes the input)] of matrices that multiply."""
    tokens, kind = model["seq_len"], model["kind"]
    for name, rows, cols in model["tensors"]:
        if rows == 1 or (kind == CLASSIFIER and name == "1.weight"):
            continue  # biases, norms, positions
        if kind == LANGUAGE and name == "embedding.weight":
            yield tokens, rows * cols, False  # as the head: looking tokens up multiplies nothing
        elif kind == CLASSIFIER:
            yield 1 if name == "4.weight" else tokens, rows * cols, name == "0.weight"
        else:
            yield tokens, rows * cols, kind == ATTENTION and not name.startswith("output")


def attention_macs(model):
    """Query by query."""
    causal = model["kind"] == LANGUAGE
    pairs = sum(query + 1 if causal else model["seq_len"] for query in range(model["seq_len"]))
    return model["num_layers"] * 2 * pairs * model["num_heads"] * model["d_head"]


def check_models(folder):
    every = models(folder)
    for name, model in every.items():
        forward = attention_macs(model) + sum(tokens * size for tokens, size, _ in weights(model))
        of_input = sum(tokens * size for tokens, size, takes_input in weights(model) if takes_input)
        check(f"{name}: {model['forward_macs']} multiply-accumulates are {forward}", model["forward_macs"] == forward)
        check(f"{name}: a step's {model['step_macs']} are {3 * forward - of_input}", model["step_macs"] == 3 * forward - of_input)
    # What their authors say, but for the class token and biases that keyword transformers have or lack.
    for name, parameters, within in (("kwt1", 607_000, 0.01), ("kwt2", 2_394_000, 0.01), ("bioformer", 94_200, 0.01),
                                     ("stories512", 260_032, 0)):
        count = sum(rows * cols for _, rows, cols in every[name]["tensors"])
        check(f"{name} has {count} parameters", abs(count - parameters) <= within * parameters)


def check_report(folder):
    figures, report = (os.path.join(folder, name) for name in ("figures", "host.json"))

    def reported(*lines, target="host"):
        with open(figures, "w", encoding="utf-8") as out:
            out.write("".join(line + "\n" for line in lines))
        said = run(sys.executable, f"{BENCH}/report.py", "--add", target, figures, report)
        with open(report, encoding="utf-8") as written:
            return said, json.load(written)

    reported("gemm.nn.8.peak_fraction 0.5", "model.kwt1.step.b32.native.vs_torch 9")
    said, written = reported("model.kwt1.step.b32.native.vs_torch 1.5", "model.kwt1.forward.b1.default.threads2.vs_ort 0.99", "absent ort")
    check("models are added to other figures", written == {
        "gemm.nn.8.peak_fraction": 0.5, "model.kwt1.step.b32.native.vs_torch": 1.5, "model.kwt1.forward.b1.default.threads2.vs_ort": 0.99})
    check("both builds have goals", re.search(r"native\.vs_torch .*1\.500 +reached", said) and re.search(r"vs_ort .* 1 +SHORT", said))
    check("what is absent is named", "ONNX Runtime is absent" in said)
    said, _ = reported("model.kwt1.forward.instructions_per_mac 1.61", "model.digits.step.instructions_per_mac 3.4", target="cortex-m4")
    check("a board's models have goals", "1 of 2 figures reached" in said)


def check_tables(folder):
    with open(os.path.join(folder, "host.json"), "w", encoding="utf-8") as out:
        json.dump({"model.kwt1.step.b1.native.vs_torch": 3.14, "model.kwt1.forward.b1.native.vs_torch": 2.5,
                   "model.kwt1.forward.b1.native.vs_ort": 1.25, "model.kwt1.forward.b1.default.vs_ort": 0.8}, out)
    with open(os.path.join(folder, "cortex-m4.json"), "w", encoding="utf-8") as out:
        json.dump({"model.kwt1.step.instructions_per_mac": 1.75, "unfused.model.kwt1.forward.cycles_per_mac": 25.5}, out)
    said = run(sys.executable, f"{BENCH}/tables.py", folder)
    check("the slowest comparison counts, and what was not measured stays empty", "| kwt1 | 1.25 / .80 |  /  | 3.14 /  |  /  |" in said)
    check("boards have a table", "| kwt1 |  |  | 26 | 1.75 |  |  |" in said)


def check_growth():
    said = run(f"{BENCH}/run", "--growth", "--quick")
    check("the command measures each size", len(re.findall(r"^growth\.\S+ \S+$", said, re.M)) == 8)


with tempfile.TemporaryDirectory() as work:
    check_models(work)
    run(*COMPILER, "-fsyntax-only", '-DATTUNE_BENCH_MODEL="attention64"', f"{BENCH}/model_library.cpp")
    check_report(work)
    check_tables(work)
    check_growth()
close()

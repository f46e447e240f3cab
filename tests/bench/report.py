"""The benchmark's table and JSON, and what its figures are to reach.

usage: report.py [--add] TARGET FIGURES JSON     FIGURES has `key value` and `absent competitor` lines

--add leaves the other figures of JSON in it.
"""
import json
import os
import re
import sys

LARGE = r"(32|64|128|256|512)"
SHAPES = ("8x16x2", "16x32x4", "32x64x4", "64x64x4", "128x128x8", "64x512x8")
STEP_VS_TORCH = (330, 58, 10.5, 5.6, 2.95, 2.25)
FORWARD_VS_TORCH = (84, 17, 4.3, 2.8, 1.75, 1.3)

# What a figure is to reach: at least (>=) or at most (<=) a bound.
HOST = [
    (rf"gemm\.(nn|tn)\.{LARGE}\.peak_fraction", ">=", 0.94),
    (rf"gemm\.nt\.{LARGE}\.peak_fraction", ">=", 0.90),
    (r"gemm\.(nn|tn)\.16\.peak_fraction", ">=", 0.90),
    (r"gemm\.nt\.16\.peak_fraction", ">=", 0.80),
    (r"gemm\.(nn|tn)\.8\.peak_fraction", ">=", 0.82),
    (r"gemm\.nt\.8\.peak_fraction", ">=", 0.65),
    (r"(x86-64-v3|sse2)\.gemm\..*\.vs_eigen", ">=", 1),
    (r"step\.batch1024\.8x4x1\.vs_openblas", ">=", 10),
    (r"step\.64x512x8\.stack_bytes", "<=", 64 * 1024),
    (r"model\..*\.int8_forward\..*\.vs_ort.*", ">=", 1.3),
    (r"model\..*\.native\.(threads2\.)?vs_.*", ">=", 1.5),
    (r"model\..*\.default\.(threads2\.)?vs_.*", ">=", 1),
    *((rf"step\.{shape}\.vs_torch", ">=", bound) for shape, bound in zip(SHAPES, STEP_VS_TORCH)),
    *((rf"forward\.{shape}\.vs_torch", ">=", bound) for shape, bound in zip(SHAPES, FORWARD_VS_TORCH)),
]
FPU_PRODUCTS = [
    (r"gemm\.(nn|nt|tn)\.32\.instructions_per_mac", "<=", 1.40),
    (r"gemm\.(nn|nt|tn)\.8\.instructions_per_mac", "<=", 1.80),
    (r"row\.(nn|nt)\..*\.instructions_per_mac", "<=", 1.35),
]
CORTEX_M4 = FPU_PRODUCTS + [
    (r"unfused\.gemm\.(nn|nt|tn)\.32\.cycles_per_mac", "<=", 2.90),
    (r"softmax\.forward\.instructions_per_element", "<=", 36),
    (r"adamw\.instructions_per_parameter", "<=", 18),
    (r"unfused\.adamw\.cycles_per_parameter", "<=", 36),
    (r"unfused\.gelu\.forward\..*\.cycles_per_element", "<=", 38.5),
    (r"gelu\.forward\..*\.cycles_per_element", "<=", 45.5),
    (r"unfused\.row\.(nn|nt)\.\d+x\d+\.cycles_per_mac", "<=", 2.75),
    (r"unfused\.dw\.[123]x64x64\.cycles_per_mac", "<=", 3.2),
    (r"step\.16x32x4\.forward_backward\.instructions", "<=", 370_000),
    (r"mlp\.step\.cycles", "<=", 2_500_000),
    (r"mlp\.sample\.cycles", "<=", 480_000),
    (r"os\.mlp\.step\.cycles", "<=", 2_900_000),
    (r"attention99\.forward\.cycles", "<=", 8_600_000),
    (r"attention99\.training\.cycles", "<=", 24_500_000),
    (r"trainer\.16x32x4\.text_bytes", "<=", 8 * 1024),
    (r"trainer\.16x32x4\.os\.text_bytes", "<=", 5 * 1024),
    (r"trainer\.16x32x4\.(os\.)?stack_bytes", "<=", 256),
    (r"second_shape\.text_bytes", "<=", 5 * 1024),
    (r"model\.kwt1\.forward\.instructions_per_mac", "<=", 1.6),
    (r"unfused\.model\.kwt1\.int8_forward\.cycles_per_mac", "<=", 1.9),
    (r"unfused\.model\.kwt1\.int8_lora_step\.cycles_per_mac", "<=", 2.59),  # 1.5 times fewer than on floats
    (r"model\.bioformer\.forward\.instructions_per_mac", "<=", 1.5),
    (r"model\.digits\.step\.instructions_per_mac", "<=", 3.4),
    (r"model\.attention256\.forward\.instructions_per_mac", "<=", 2.2),
]
CORTEX_M33 = FPU_PRODUCTS + [
    (r"unfused\.gemm\.(nn|nt|tn)\.32\.cycles_per_mac", "<=", 2.90),
]
CORTEX_M55 = [
    (r"gemm\.(nn|tn)\.32\.instructions_per_mac", "<=", 0.46),
    (r"gemm\.nt\.32\.instructions_per_mac", "<=", 0.56),
    (r"gemm\.(nn|tn)\.8\.instructions_per_mac", "<=", 0.80),
    (r"gemm\.nt\.8\.instructions_per_mac", "<=", 0.90),
    (r"softmax\.forward\.instructions_per_element", "<=", 9),
    (r"adamw\.instructions_per_parameter", "<=", 14),
    (r"step\.16x32x4\.forward_backward\.instructions", "<=", 140_000),
]
AARCH64 = [
    (r"gemm\.(nn|tn)\.64\.instructions_per_mac", "<=", 0.32),
    (r"packed_int8\.forward\.64x64x64\.instructions_per_mac", "<=", 0.10),
]
GOALS = {"host": HOST, "aarch64": AARCH64, "cortex-m4": CORTEX_M4, "cortex-m7": FPU_PRODUCTS, "cortex-m33": CORTEX_M33, "cortex-m55": CORTEX_M55}

COMPETITORS = {"openblas": ("OpenBLAS", "libopenblas-dev"),
               "libxsmm": ("libxsmm", "libxsmm-dev"),
               "torch": ("PyTorch", "python3-torch"),
               "libtorch": ("libtorch", "libtorch-dev"),
               "ort": ("ONNX Runtime", "npm, and from it onnxruntime-node")}


def read_figures(path):
    figures, absent = {}, []
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            key, value = line.split()
            if key == "absent":
                absent.append(value)
            else:
                number = float(value)
                figures[key] = int(number) if number.is_integer() else number
            if backward := re.fullmatch(r"(step\.16x32x4\.)backward(\.\w+)", key):
                step, unit = backward.groups()
                figures[f"{step}forward_backward{unit}"] = figures[f"{step}forward{unit}"] + figures[key]
    return figures, absent


def goal_of(target, key):
    """(relation, bound) of a figure, or None."""
    for pattern, relation, bound in GOALS[target]:
        if re.fullmatch(pattern, key):
            return relation, bound
    return None


def group_of(key):
    """What stands together in the table."""
    return re.match(r"((unfused|x86-64-v3|sse2)\.)?(model\.[a-z0-9]+|[a-z]+(\.(nn|nt|tn))?)", key).group()


def is_reached(value, relation, bound):
    return value >= bound if relation == ">=" else value <= bound


def text(value):
    return str(value) if isinstance(value, int) else f"{value:.3f}" if value < 100 else f"{value:.1f}"


def report_figures(target, figures_path, json_path, add):
    figures, absent = read_figures(figures_path)
    every = {}
    if add and os.path.exists(json_path):
        with open(json_path, encoding="utf-8") as before:
            every = json.load(before)
    with open(json_path, "w", encoding="utf-8") as out:
        json.dump(every | figures, out, indent=2)
        out.write("\n")

    groups = {}
    for key in figures:
        groups.setdefault(group_of(key), []).append(key)
    width = max(map(len, figures), default=0)
    print(f"\n{target}\n{'figure':{width}} {'measured':>10}  {'to reach':>11}")
    reached = total = 0
    for keys in groups.values():
        for key in keys:
            value, goal, verdict = figures[key], goal_of(target, key), ""
            if goal:
                total += 1
                reached += is_reached(value, *goal)
                verdict = f"{goal[0]} {text(goal[1]):>8}  {'reached' if is_reached(value, *goal) else 'SHORT'}"
            print(f"{key:{width}} {text(value):>10}  {verdict}".rstrip())
        print()
    print(f"{target}: {reached} of {total} figures reached")
    for competitor in absent:
        name, package = COMPETITORS[competitor]
        print(f"{target}: {name} is absent and not compared with (Debian: {package}; tests/bench/run --install)")
    sys.stdout.flush()


arguments = sys.argv[1:]
report_figures(*(argument for argument in arguments if argument != "--add"), add="--add" in arguments)

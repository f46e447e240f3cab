"""Times attune's models against PyTorch's and ONNX Runtime's, taking turns.

usage: against_models.py [--threads N] [--node FOLDER] [--libtorch FILE] [--quick] NATIVE DEFAULT NAME...

NATIVE and DEFAULT are folders with libmodel_NAME.so of two builds. FOLDER has the node_modules of onnxruntime-node, which
cannot train; without it only PyTorch is compared with. FILE is torch_step.cpp's library: PyTorch's step without Python.

A forward pass is inference; a step is forward, loss, backward and AdamW, of 1 and of 32 sequences. PyTorch and ONNX Runtime
take the sequences of a batch at once. Of PyTorch's forms of the same work, on as many threads or on one, the fastest counts.
What all compute is compared before it is timed. On one thread, attune's forward in integers takes turns with ONNX Runtime in
floats and with products in integers (quantized_onnx.py, which needs python3-onnx). On one thread time is
the processor's, on several what passes. Prints `key value` lines; which of PyTorch's forms it was goes to standard error.
"""
import argparse
import ctypes
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np
import torch

import torch_models
from turns import race, ratio, repeated, timed

try:
    import quantized_onnx
except ImportError:  # without python3-onnx
    quantized_onnx = None

BATCHES = 1, 32


def clock_of(threads):
    """Of one thread the processor's time, which does not count what others take of the core."""
    return time.process_time if threads == 1 else time.perf_counter


class Library:
    """A build of a model, as model_library.cpp has it."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name in ("parameters", "x", "target", "y"):
            getattr(self.library, f"attune_bench_{name}").restype = ctypes.c_void_p
        self.library.attune_bench_describe.restype = ctypes.c_char_p
        self.library.attune_bench_step.restype = ctypes.c_float
        self.shape = json.loads(self.library.attune_bench_describe())

    def numbers(self, name, *size, ids=False):
        """A copy of what attune has under `name`."""
        kind = ctypes.c_int if ids else ctypes.c_float
        address = ctypes.cast(getattr(self.library, f"attune_bench_{name}")(), ctypes.POINTER(kind))
        numbers = torch.from_numpy(np.ctypeslib.as_array(address, (int(np.prod(size)),)).copy()).reshape(size)
        return numbers.long() if ids else numbers

    def tensors(self):
        sizes = [rows * cols for _, rows, cols in self.shape["tensors"]]
        parts = self.numbers("parameters", sum(sizes)).split(sizes)
        return {name: part.reshape(rows, cols) for (name, rows, cols), part in zip(self.shape["tensors"], parts)}

    def prepare(self, threads):
        self.library.attune_bench_prepare(threads)

    def contender(self, work, batch, clock):
        function = getattr(self.library, f"attune_bench_{work}")
        return timed(lambda calls: function(batch, ctypes.c_long(calls)), clock)


class LibTorch:
    """PyTorch's training step in C++, of the library that Python's is over."""

    def __init__(self, path):
        self.library = ctypes.CDLL(os.path.abspath(path))
        self.library.torch_step.restype = ctypes.c_float

    @staticmethod
    def described(tensor):
        sizes = (ctypes.c_long * tensor.dim())(*tensor.shape)
        return ctypes.c_void_p(tensor.data_ptr()), sizes, tensor.dim()

    def load(self, shape, model, x, target):
        keys = "kind", "seq_len", "num_layers", "num_heads", "num_kv_heads", "d_head", "norm_before"
        self.library.torch_step_begin(*(shape[key] for key in keys))
        for named, trained in ((model.named_parameters(), 1), (model.named_buffers(), 0)):
            for name, tensor in named:
                tensor = tensor.detach().contiguous()
                self.library.torch_step_tensor(name.encode(), *self.described(tensor), trained)
        for part, tensor in (("input", x), ("target", target)):
            getattr(self.library, f"torch_step_{part}")(*self.described(tensor), int(tensor.dtype == torch.int64))
        self.library.torch_step_prepare()

    def steps(self, calls):
        """The loss of the last one."""
        return self.library.torch_step(ctypes.c_long(calls))


class OnnxRuntime:
    """A Node with ONNX Runtime, which takes its turns there: time is measured on that side."""

    def __init__(self, folder, threads):
        worker = os.path.join(os.path.dirname(os.path.abspath(__file__)), "ort_worker.mjs")
        self.node = subprocess.Popen(["node", worker, os.path.abspath(folder)], stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, text=True)
        self.threads, self.files = threads, tempfile.TemporaryDirectory()

    def ask(self, **request):
        self.node.stdin.write(json.dumps(request) + "\n")
        self.node.stdin.flush()
        answer = json.loads(self.node.stdout.readline() or '{"error": "Node has ended"}')
        if "error" in answer:
            sys.exit(f"against_models.py: ONNX Runtime says: {answer['error']}")
        return answer

    def export(self, model, x):
        path = os.path.join(self.files.name, "model.onnx")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(model, (x,), path, opset_version=17)
        return path

    def load(self, path, x, name):
        """Makes a file what contender(name) runs; returns what it gives for x, flat."""
        x_file, y_file = (os.path.join(self.files.name, file) for file in ("x", "y"))
        x.numpy().tofile(x_file)
        self.ask(**{"as": name}, load=path, threads=self.threads, ids=x.dtype == torch.int64, shape=list(x.shape), x=x_file,
                 y=y_file)
        return torch.from_numpy(np.fromfile(y_file, np.float32))

    def contender(self, name):
        return lambda calls: self.ask(calls=calls, of=name)["processor" if self.threads == 1 else "seconds"]

    def close(self):
        self.node.stdin.close()
        self.node.wait()


class Same(torch.nn.Module):
    """Nothing to compute: what ONNX Runtime takes is its own and its binding's."""

    def forward(self, x):
        return torch.nn.Identity()(x.view(x.shape))


def require_close(what, ours, theirs):
    if not torch.allclose(ours.flatten(), theirs.flatten(), rtol=2e-3, atol=1e-4):
        worst = (ours.flatten() - theirs.flatten()).abs().max()
        sys.exit(f"against_models.py: {what} differ by up to {worst:.3g}")


def on_threads(threads, contender):
    def seconds(calls):
        torch.set_num_threads(threads)
        return contender(calls)
    return seconds


def fastest(forms, warm):
    """The name of the fastest of {name: contender}, by a few turns, each behind so many seconds that do not count."""
    names = list(forms)
    if len(names) == 1:
        return names[0]
    times = race([forms[name] for name in names], turn=5e-4, budget=0.1, fewest=1, most=9, warm=warm)
    return min(zip(map(min, times), names))[1]


def forward_forms(shape, model, x, clock):
    """PyTorch's forms of inference, as contenders."""
    forms = {"eager": model}
    if other := torch_models.fused(shape, model):
        forms["fused layers"] = other
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(model, (x,))
        forms["traced and frozen"] = torch.jit.freeze(traced)
        forms["traced, frozen, oneDNN"] = torch.jit.optimize_for_inference(torch.jit.trace(model, (x,)))
    y = model(x)
    for name, form in forms.items():
        require_close(f"PyTorch's own forms ({name})", form(x), y)
    return {name: repeated(lambda form=form: form(x), clock) for name, form in forms.items()}


def training_step(model, x, target, **options):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, **options)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = model.loss(x, target)
        loss.backward()
        optimizer.step()
        return loss
    return step


class Comparison:
    def __init__(self, name, builds, threads, onnx_runtime, libtorch, quick):
        self.name, self.builds, self.threads, self.onnx_runtime, self.libtorch, self.quick = (
            name, builds, threads, onnx_runtime, libtorch, quick)
        self.shape = builds["native"].shape
        self.clock = clock_of(threads)
        self.warm = 0 if threads == 1 or quick else 1e-2
        self.on_threads = "" if threads == 1 else f"threads{threads}."  # in keys
        self.model = torch_models.Model(self.shape)
        for library in builds.values():
            library.prepare(threads)

    def figure(self, key, value):
        print(f"model.{self.name}.{key} {value:.6g}", flush=True)

    def race(self, work, batch, theirs):
        """Times both builds of attune and {competitor: contender}."""
        contenders = [library.contender(work, batch, self.clock) for library in self.builds.values()] + list(theirs.values())
        limits = dict(turn=1e-4, budget=0, fewest=1, most=1) if self.quick else dict(
            turn=2e-3, budget=1.2, fewest=3, most=25 if self.threads == 1 else 11)
        # Threads of ONNX Runtime look out for work for tens of milliseconds.
        times = race(contenders, pause=2e-3 if self.threads == 1 or self.quick else 1e-1, warm=self.warm, **limits)
        for build, ours in zip(self.builds, times):
            key = f"{work}.b{batch}.{build}.{self.on_threads}"
            self.figure(key + "milliseconds", 1e3 * min(ours))
            for competitor, other in zip(theirs, times[len(self.builds):]):
                self.figure(f"{key}vs_{competitor}", ratio(other, ours))
        return dict(zip([*self.builds, *theirs], times))

    def chosen(self, work, batch, forms):
        forms = {(name, threads): on_threads(threads, form)
                 for name, form in forms.items() for threads in sorted({1, self.threads})}
        name, threads = fastest(forms, self.warm)
        print(f"{self.name}, {work}, batch of {batch}, {self.threads} threads: PyTorch's fastest form is {name} on {threads}",
              file=sys.stderr)
        return forms[name, threads]

    def forward(self, batch, x):
        shape, model = self.shape, self.model.eval()
        rows = shape["outputs"], shape["d_out"]
        with torch.inference_mode():
            expected = model(x)
            for build, library in self.builds.items():
                library.contender("forward", batch, self.clock)(1)
                ours = library.numbers("y", batch, *rows)
                require_close(f"outputs of {self.name}, {build}, and of PyTorch", ours, expected)
        with torch.no_grad():
            forms = forward_forms(shape, model, x, self.clock)
        with torch.inference_mode():
            theirs = {"torch": self.chosen("forward", batch, forms)}
            if not self.onnx_runtime:
                self.race("forward", batch, theirs)
                return
        with torch.no_grad():
            runtime = self.onnx_runtime
            runtime.load(runtime.export(Same(), x), x, "same")
            _, alone = race([runtime.contender("same")] * 2, turn=5e-4, budget=0.1, fewest=3, most=25)
            path = runtime.export(model, x)
            require_close(f"outputs of {self.name} and of ONNX Runtime", runtime.load(path, x, "floats"), expected)
        with torch.inference_mode():
            theirs["ort"] = runtime.contender("floats")
            times = self.race("forward", batch, theirs)
            if shape["kind"] == torch_models.CLASSIFIER and self.threads == 1 and quantized_onnx:
                self.int8_forward(batch, path, x, expected)
        self.figure(f"forward.b{batch}.{self.on_threads}ort_call_share", statistics.median(alone) / statistics.median(times["ort"]))

    def int8_forward(self, batch, path, x, expected):
        """In integers, of the native build, against its floats, and against ONNX Runtime's floats and integers."""
        runtime, library = self.onnx_runtime, self.builds["native"]
        integers = path + ".integers"
        quantized_onnx.quantize(path, integers)
        library.contender("int8_forward", batch, self.clock)(1)
        outputs = {"attune": library.numbers("y", *expected.shape), "ort": runtime.load(integers, x, "integers").view_as(expected)}
        for name, output in outputs.items():
            self.figure(f"int8_forward.b{batch}.{name}_error", ((output - expected).norm() / expected.norm()).item())
        contenders = {"integers": library.contender("int8_forward", batch, self.clock),
                      "float": library.contender("forward", batch, self.clock),
                      "ort": runtime.contender("floats"), "ort_int8": runtime.contender("integers")}
        limits = dict(turn=1e-4, budget=0, fewest=1, most=1) if self.quick else dict(turn=2e-3, budget=1.2, fewest=3, most=25)
        ours, *others = race(list(contenders.values()), pause=2e-3, **limits)
        self.figure(f"int8_forward.b{batch}.native.milliseconds", 1e3 * min(ours))
        for name, other in zip(list(contenders)[1:], others):
            self.figure(f"int8_forward.b{batch}.native.vs_{name}", ratio(other, ours))

    def step(self, batch, x, target):
        self.model.load(self.builds["native"].tensors())
        self.model.train()
        steps = {name: training_step(self.model, x, target, foreach=foreach)
                 for name, foreach in (("AdamW a tensor", False), ("AdamW over all tensors", True))}
        if self.libtorch:
            self.libtorch.load(self.shape, self.model, x, target)
        expected = steps["AdamW a tensor"]().item()
        for build, library in self.builds.items():
            library.prepare(self.threads)
            loss = library.library.attune_bench_step(batch, ctypes.c_long(1))
            if abs(loss - expected) > 1e-4 * abs(expected):
                sys.exit(f"against_models.py: the loss of {self.name}, {build}, is {loss}, PyTorch's {expected}")
        forms = {name: repeated(step, self.clock) for name, step in steps.items()}
        theirs = {"torch": self.chosen("step", batch, forms)}
        if self.libtorch:
            loss = self.libtorch.steps(1)
            if abs(loss - expected) > 1e-4 * abs(expected):
                sys.exit(f"against_models.py: the loss of {self.name} is {loss} in libtorch, in PyTorch {expected}")
            theirs["libtorch"] = on_threads(self.threads, timed(self.libtorch.steps, self.clock))
        self.race("step", batch, theirs)

    def run(self):
        shape = self.shape
        language = shape["kind"] == torch_models.LANGUAGE
        for batch in BATCHES:
            size = (batch, shape["seq_len"]) if language else (batch, shape["seq_len"], shape["d_in"])
            x = self.builds["native"].numbers("x", *size, ids=language)
            attention = shape["kind"] == torch_models.ATTENTION
            size = (batch, shape["outputs"], shape["d_out"]) if attention else (batch, shape["outputs"])
            target = self.builds["native"].numbers("target", *size, ids=not attention)
            self.model.load(self.builds["native"].tensors())
            self.forward(batch, x)
            self.step(batch, x, target)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--node")
    parser.add_argument("--libtorch")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("native")
    parser.add_argument("default")
    parser.add_argument("names", nargs="+")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    gc.disable()
    torch.mm(torch.ones(8, 8), torch.ones(8, 8))
    with open("/proc/self/maps", encoding="utf-8") as maps:
        libraries = maps.read()
        if not any(name in libraries for name in ("openblas", "mkl")):
            sys.exit("against_models.py: PyTorch's products are those of the reference BLAS; tests/bench/run --install gets OpenBLAS")
    onnx_runtime = OnnxRuntime(options.node, options.threads) if options.node else None
    libtorch = LibTorch(options.libtorch) if options.libtorch else None
    for name in options.names:
        builds = {build: Library(os.path.join(os.path.abspath(folder), f"libmodel_{name}.so"))
                  for build, folder in (("native", options.native), ("default", options.default))}
        Comparison(name, builds, options.threads, onnx_runtime, libtorch, options.quick).run()
        gc.collect()
    if onnx_runtime:
        onnx_runtime.close()


main()

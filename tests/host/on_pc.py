#!/usr/bin/env python3
"""digits on threads: the same parameters, a page that an XML parser reads, and Ctrl-C.

  tests/host/on_pc.py build/host/examples/digits_8x32x4     ends with `N passed, N failed`
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

passed = failed = 0


def check(what, holds):
    global passed, failed
    passed, failed = passed + bool(holds), failed + (not holds)
    print("ok" if holds else "FAILED", what)


def environment(arguments, page=None):
    return {**os.environ, "ATTUNE_ARGUMENTS": arguments, **({"ATTUNE_PAGE": page} if page else {})}


def run(program, arguments, page=None):
    """The result line as a dictionary."""
    output = subprocess.run([program], env=environment(arguments, page), capture_output=True, text=True, timeout=300)
    return result_of(output.stdout)


def result_of(output):
    lines = [line for line in output.splitlines() if line.startswith("result ")]
    return dict(re.findall(r"(\w+)=(\S+)", lines[-1])) if lines else {}


def read_page(path):
    """Its text and how many elements of each kind it has; nothing where it is not well formed."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, xml.etree.ElementTree.ParseError) as error:
        print(error)
        return "", {}
    kinds = {}
    for element in root.iter():
        kinds[element.tag] = kinds.get(element.tag, 0) + 1
    return " ".join(root.itertext()), kinds


def interrupted(program, page):
    """Ctrl-C at the first sign of progress."""
    with subprocess.Popen([program], env=environment("--threads 2", page), stdout=subprocess.PIPE, text=True,
                          preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as process:
        output = ""
        for line in process.stdout:
            output += line
            if line.startswith("  step ") and "interrupted" not in output and output.count("  step ") == 1:
                process.send_signal(signal.SIGINT)
        return process.wait(), output


def main():
    program = sys.argv[1]
    expected = run(program, "--steps 200 --validation 144")
    check("digits trains", expected.get("parameters_hash"))
    for threads in (1, 2, 3, 7):
        result = run(program, f"--steps 200 --threads {threads}")
        check(f"the same parameters and logits on {threads} threads",
              all(result.get(key) == expected.get(key) for key in ("parameters_hash", "logits_hash", "loss_last")))
    check("with every image it is training as on a board",
          run(program, "--steps 200 --threads 2 --validation 0").get("parameters_hash", "-") ==
          run(program, "--steps 200").get("parameters_hash"))
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "a page.html")
        result = run(program, "--steps 200", page)
        text, kinds = read_page(page)
        check("the page is well formed", kinds)
        check("it has the hash and the accuracy of the result",
              result.get("parameters_hash", "-") in text and f"{100 * float(result.get('accuracy', 0)):.1f} %" in text)
        heads = int(result.get("heads", 0)) * int(result.get("blocks", 0))
        check("it has both curves, the sample and every head",
              kinds.get("svg") == 3 + heads and kinds.get("polyline") == 2)
        check("it loads nothing", not {"script", "link", "img", "iframe"} & set(kinds))

        page = os.path.join(folder, "interrupted.html")
        code, output = interrupted(program, page)
        result = result_of(output)
        steps = int(result.get("steps", 0))
        check("Ctrl-C ends training with a result", code == 0 and "interrupted after" in output and 0 < steps < 1800)
        check("the result is of the best parameters so far",
              run(program, f"--steps {steps} --validation 144").get("parameters_hash") == result.get("parameters_hash", "-"))
        check("the page is written nevertheless", result.get("parameters_hash", "-") in read_page(page)[0])
    check("a page that cannot be written is an error",
          subprocess.run([program], env=environment("--steps 1", "/no such folder/page.html"), capture_output=True,
                         timeout=300).returncode == 1)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())

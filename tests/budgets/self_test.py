#!/usr/bin/env python3
"""stack_bound.py and the comparison of budgets find what they look for. Ends with `N passed, N failed`."""
import contextlib
import io
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import budgets  # noqa: E402  (beside this file)
import stack_bound  # noqa: E402
from checks import check, close  # noqa: E402


# Programs in C with names as they are; leaf(n) takes n bytes and more.
PRELUDE = """
#define NOINLINE __attribute__((noinline))
#define FRAME(n) volatile char frame[n]; frame[0] = 1
NOINLINE int leaf(void) { FRAME(200); return frame[0]; }
"""
LIBRARY = "int library(void) { volatile char frame[400]; frame[0] = 1; return frame[0]; }"


def built(source, folder, library="", options=()):
    """A program in a folder, with .ci files. The library has none."""
    command = ["arm-none-eabi-g++", "-mthumb", "-mcpu=cortex-m3", "-O1", "-fno-exceptions", *options]
    language = ["-c", "-x", "c++" if "template" in source else "c", "-"]
    subprocess.run([*command, *language, "-fcallgraph-info=su", "-o", folder / "program.o"], input=PRELUDE + source, text=True, check=True)
    subprocess.run([*command, *language, "-o", folder / "library.o"], input=library, text=True, check=True)
    subprocess.run([*command, "-fcallgraph-info=su", "-nostdlib", "-Wl,-e,main", "-o", folder / "program.elf", folder / "program.o",
                    folder / "library.o"], check=True)
    return folder / "program.elf"


def bound_of(source, library="", root="main", calls=(), options=()):
    """What stack_bound makes of a program."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        elf = built(source, folder, library, options)
        try:
            return stack_bound.bound(elf, [folder], root, [*calls, *stack_bound.KNOWN_CALLS])
        except stack_bound.Unbounded as reason:
            return str(reason)


def expect_path(what, source, path, least, most, **options):
    found = bound_of(source, **options)
    ok = isinstance(found, tuple) and [name for name, _ in found[1]] == path and least <= found[0] <= most and \
        found[0] == sum(size for _, size in found[1])
    check(what, ok, found)


def expect_unbounded(what, source, reason):
    found = bound_of(source)
    check(what, isinstance(found, str) and reason in found, found)


def check_stack_bound():
    expect_path("the deeper of two paths", "NOINLINE int deep(void) { FRAME(100); return frame[0] + leaf(); }"
                "int main(void) { return leaf() + deep() + leaf(); }", ["main", "deep", "leaf"], 300, 350)
    expect_path("another root", "int main(void) { FRAME(500); return frame[0] + leaf(); }", ["leaf"], 200, 220,
                root="leaf")
    expect_path("a function without a .ci file", "int library(void);"
                "int main(void) { FRAME(8); return library() + leaf(); }", ["main", "library"], 408, 440, library=LIBRARY)
    expect_path("a call that assembly makes", 'int main(void) { FRAME(8); __asm__("bl leaf" ::: "r0", "r1", "r2", "r3", '
                '"ip", "lr"); return frame[0]; }', ["main", "leaf"], 208, 240)
    expect_path("a tail call", "int library(void);"
                "NOINLINE int middle(int x) { if (x) return 0; return library(); }"
                "int main(void) { return middle(leaf()) + 1; }", ["main", "middle", "library"], 400, 440, library=LIBRARY)
    expect_path("a loop is no recursion", "int main(void) { int sum = 0; "
                "for (volatile int i = 0; i < 9; ++i) sum += leaf(); return sum; }", ["main", "leaf"], 200, 240)
    expect_path("registers on the stack", 'int main(void) { return leaf(); } __asm__(".global saver\\n.thumb_func\\n'
                '.type saver,%function\\nsaver: push {r4-r7,lr}\\nsub sp, #24\\nbl leaf\\nadd sp, #24\\npop {r4-r7,pc}\\n");',
                ["saver", "leaf"], 244, 264, root="saver")
    expect_unbounded("recursion", "int main(void) { volatile int x = 1; return x ? main() + 1 : 0; }", "recursion: main")
    expect_unbounded("recursion of two", "int b(int); NOINLINE int a(int x) { return x ? b(x - 1) + 1 : 0; }"
                     "NOINLINE int b(int x) { return x ? a(x - 1) + 2 : 1; } int main(void) { return a(leaf()); }",
                     "recursion: ")
    expect_unbounded("a call through a pointer",
                     "int (*volatile pointer)(void); int main(void) { return pointer() + 1; }",
                     "main calls through a pointer")
    expect_unbounded("a tail call through a pointer",
                     "int (*volatile pointer)(void); int main(void) { return pointer(); }",
                     "main calls through a pointer")
    def returns(over=""):
        return ('int main(void) { return leaf(); } __asm__(".global saver\\n.thumb_func\\n.type saver,%function\\n'
                'saver: mov r9, lr\\nbl leaf\\n' + over + 'bx r9\\n");')
    expect_path("a return through a copy of the return address", returns(), ["saver", "leaf"], 200, 220, root="saver")
    check("a jump through what is written over that copy", "saver calls through a pointer: bx r9" in bound_of(returns("mov r9, r0\\n"), root="saver"))
    expect_unbounded("a call through a pointer in assembly", 'int main(void) { __asm__("blx r3" ::: "lr"); return leaf(); }',
                     "main calls through a pointer: blx r3")
    expect_unbounded("an array of variable size", "int main(void) { volatile int n = 9; volatile char a[n]; a[0] = 1; "
                     "return a[0]; }", "main has no fixed size")
    through_pointer = "int (*volatile pointer)(void) = leaf; int main(void) { return pointer() + 1; }"
    expect_path("a call through a pointer of which it is said whom it reaches", through_pointer, ["main", "leaf"], 200, 230,
                calls=[("main", "leaf")])
    check("whom a pointer is said to reach is not there",
           "which is not there" in bound_of(through_pointer, calls=[("main", "nobody")]))
    check("whom a pointer is said to reach is none whose address stands anywhere",
           "no pointer holds the address of other" in bound_of(
               "NOINLINE int other(void) { FRAME(8); return frame[0]; } int (*volatile pointer)(void) = leaf; "
               "int main(void) { return pointer() + other(); }", calls=[("main", "other")]))
    expect_path("a pointer in an instruction", "NOINLINE int through(int (*pointer)(void)) { return pointer() + 1; }"
                "int main(void) { return through(leaf); }", ["main", "through", "leaf"], 200, 240, calls=[("through", "leaf")])
    expect_path("a function by its C++ name", 'NOINLINE int deep(void) __asm__("_ZN4room4deepEi"); '
                "int deep(void) { return leaf() + 1; } int main(void) { return deep(); }", ["_ZN4room4deepEi", "leaf"], 200, 230,
                root="room::deep")
    check("no such function", "no function nobody" in bound_of("int main(void) { return 0; }", root="nobody"))
    expect_path("link-time optimization", "int main(void) { FRAME(8); return frame[0] + leaf(); }", ["main", "leaf"], 208, 240,
                options=["-flto"])
    expect_path("registers that assembly puts on the stack", "int main(void) { FRAME(8); "
                '__asm__ volatile("push {r4, r5, r6, r7}\\n\\tbl leaf\\n\\tpop {r4, r5, r6, r7}" ::: "r0", "r1", "r2", "r3", "ip", "lr", "memory"); '
                "return frame[0] + leaf(); }", ["main", "leaf"], 224, 256)
    source = "int main(void) { FRAME(8); return frame[0] + leaf(); }"
    check("link-time optimization with objects that are whole", bound_of(source, options=["-flto", "-ffat-lto-objects"]) ==
          bound_of(source, options=["-flto"]))


TEMPLATES = """
namespace attune::inline v2_0_unfused {
template <int bytes> struct Task {
  template <class T> NOINLINE static int deep(T (*)[(bytes > 3)]) { FRAME(bytes); return frame[0] + leaf(); }
};
}
int main() { return attune::Task<300>::deep<int>(nullptr) + 1; }
"""


def check_names():
    for name, expected in (
            ("main", "main"), ("attune::v2_0_unfused::Trainer<attune::v2_0_unfused::Layer<(Shape){4, 8}>, Loss>::step", "attune::Trainer::step"),
            ("f<((3)>(2)), int>", "f"), ("A<1>::operator()<B<2> >", "A::operator()"), ("A<1>::operator<< <int>", "A::operator<<"),
            ("A::operator-> <int>", "A::operator->"), ("A<1>::operator<=>", "A::operator<=>"), ("operator< <int>", "operator<"),
            ("(anonymous namespace)::f<1>", "(anonymous namespace)::f"), ("f<int> [clone .constprop.0] [clone .isra.0]", "f"),
            ("main.constprop.0", "main")):
        found = stack_bound.readable(name)
        check(f"{name} is readable", found == expected, found)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        script = [sys.executable, "-B", pathlib.Path(stack_bound.__file__), "--root", "main"]
        said = subprocess.run([*script, built(TEMPLATES, folder), folder], capture_output=True, text=True).stdout
        check("functions are printed without template arguments", [line.split()[1] for line in said.splitlines()] ==
              ["main", "attune::Task::deep", "leaf", "bytes"], said)
        elf = built(TEMPLATES.replace("+ leaf()", "+ (frame[0] ? deep((T (*)[1]) nullptr) : leaf())"), folder)
        said = subprocess.run([*script, elf, folder], capture_output=True, text=True).stderr
        check("so are those of a reason", "recursion: attune::Task::deep" in said, said)


HERE = {"compiler": "g++ 1", "qemu": "qemu 1"}
FIGURES = {"text": 10_000, "ram": 20_000, "stack": 1_000, "stack_bound": 1_000, "instructions": 1_000_000}


def compared(changed, here=None, drop=()):
    """(report, text) of the comparison with figures that have changed."""
    recorded = {**HERE, "budgets": {"image": {"board": FIGURES}}}
    now = {key: value for key, value in {**FIGURES, **changed}.items() if key not in drop}
    report, text = budgets.Report(), io.StringIO()
    with contextlib.redirect_stdout(text):
        budgets.compare(recorded, {"image": {"board": now}}, {**HERE, **(here or {})}, report)
    return report, text.getvalue()


def bounded(figures, written, image="image"):
    report = budgets.Report()
    with contextlib.redirect_stdout(io.StringIO()):
        budgets.check_bounds({image: {"board": figures}}, written, report)
    return report.failed == 0


def check_comparison():
    for figure, value in FIGURES.items():
        report, text = compared({figure: value * 101 // 100})
        check(f"1 % more {figure} is allowed", (report.passed, report.failed) == (5, 0), text)
        report, text = compared({figure: value * 101 // 100 + 1})
        grown = f"FAILED image on board: {figure} was {value:,}, is {value * 101 // 100 + 1:,} (+1."
        check(f"more {figure} is not", (report.passed, report.failed) == (4, 1) and grown in text, text)
        report, text = compared({figure: value * 98 // 100})
        check(f"less {figure} is told", report.failed == 0 and f"shrunk image on board: {figure}" in text and
               "--record" in text, text)
        report, text = compared({}, drop=(figure,))
        check(f"{figure} that is not measured", report.failed == 1 and "not measured" in text, text)
    report, text = compared({"speed": 1})
    check("a figure without a record", report.failed == 1 and "not recorded" in text, text)
    report, text = compared({"text": 99_999, "instructions": 9_999_999}, {"compiler": "g++ 2"})
    check("another compiler", (report.passed, report.failed, report.skipped) == (0, 0, 1) and "g++ 2" in text, text)
    report, text = compared({"instructions": 9_999_999}, {"qemu": "qemu 2"})
    check("another QEMU", (report.passed, report.failed, report.skipped) == (4, 0, 1) and "qemu 2" in text, text)
    report, text = compared({}, {"qemu": "qemu 2"}, drop=("instructions",))
    check("another QEMU, not counted", (report.passed, report.failed, report.skipped) == (4, 0, 1), text)
    check("measured, computed and written bound", bounded(FIGURES, 1_000))
    check("measured above the computed bound", not bounded({**FIGURES, "stack": 1_001}, 9_999))
    check("the second core's stack above its bound", not bounded({**FIGURES, "second_stack": 5, "second_stack_bound": 4}, 1_000))
    check("computed above the written bound", not bounded(FIGURES, 999))
    check("README's bound is not the example's", bounded(FIGURES, 999, budgets.EXAMPLE))
    check("README's sentence", budgets.written_bound("takes at most 1,384 bytes of stack, you see") == 1384)
    recorded = budgets.read()
    check("the file is as --record writes it", budgets.FILE.read_text(encoding="utf-8") == budgets.text_of(recorded))
    with contextlib.redirect_stdout(io.StringIO()):
        report = budgets.Report()
        budgets.check_readme(recorded, report)
        recorded["budgets"][budgets.EXAMPLE]["microbit"]["text"] += 1
        budgets.check_readme(recorded, report)
    check("README has the tables of the file, and no others", (report.passed, report.failed) == (1, 1))


check_stack_bound()
check_names()
check_comparison()
close()

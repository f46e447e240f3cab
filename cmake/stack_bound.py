#!/usr/bin/env python3
"""Upper bound of a firmware's stack, from its call graph.

usage: stack_bound.py [--root FUNCTION] [--limit BYTES] [--calls CALLER=CALLEE]... [--tools PREFIX] [--on-failure keep|remove]
                      FIRMWARE.elf FOLDER...

Prints the deepest path from FUNCTION (default reset_handler). Add the stack of interrupt handlers, and the registers that the
processor saves for them.

FOLDERs contain the .ci files that GCC writes with -fcallgraph-info=su: the stack of each function. With link-time optimization they are
beside FIRMWARE.elf, if the option is also given to the linker. Calls are read from them and from the disassembly, which also shows calls
made in assembly. Functions of newlib and libgcc have no .ci file: they count with everything that they subtract from the stack pointer.

Fails on recursion, on a stack of variable size, above BYTES, and on a call through a pointer unless KNOWN_CALLS or --calls names its
targets. A named target whose address is never taken is an error, too. `--on-failure remove` then removes the firmware.

CALLER and CALLEE are regular expressions. Functions are named as in the output (in C++, without template arguments, parameters, the
inline namespace of attune and the suffixes of copies that GCC makes), or in C++ without parameters, or as in the ELF file. PREFIX
(default arm-none-eabi-) is the prefix of objdump, nm, readelf and c++filt.
"""
import functools
import glob
import pathlib
import re
import struct
import subprocess
import sys

ROOT = "reset_handler"

# Calls through a pointer: who makes them, and whom they reach. None stands for .init_array.
KERNELS = r"attune::kernels::detail::"
KNOWN_CALLS = (
    (r"run_program", None),
    # The assembly tiles, through the TileGrid.
    (KERNELS + r"tiles_loop", KERNELS + r"tile_\w+"),
    # Those of few rows, through the RowGrid.
    (KERNELS + r"few_rows_blocks", KERNELS + r"row_\w+"),
    # Those of 8- and 16-bit weights, likewise.
    (KERNELS + r"(quantized_tiles_product|quantized_panels_product|sum_panel)", KERNELS + r"\w*(int8|float16)_(along|across)\w*"),
)
# Who puts the stack pointer up, and takes nothing: start-up code, before anything is on the stack, and longjmp, which calls
# nobody either.
LONGJMP = "longjmp"
SETS_STACK_POINTER = ("reset_handler", LONGJMP)
STUB = "(linker)"


# What comes before the names of the tools.
prefix = "arm-none-eabi-"


class Unbounded(Exception):
    """There is no bound, and why."""


class Function:
    def __init__(self, name):
        self.name = name
        self.frame = None       # bytes, by GCC; None without a .ci file
        self.taken = 0          # off the stack pointer, by the disassembly
        self.variable = None    # what makes the frame one of variable size
        self.calls = set()      # functions by address
        self.jumps = set()      # likewise: tail calls, and the parts of a function in assembly
        self.indirect = []      # instructions
        self.popped = ""        # the last registers from the stack, among them a return address for Thumb-1's bx
        self.link = None        # the register that has a copy of the return address
        self.falls_into = None  # the function behind it, unless the last instruction leaves

    def stack(self):
        """GCC's frame has neither what assembly takes nor arguments that -Os pushes for a call."""
        return max(self.frame or 0, self.taken)


def tool(name, *arguments):
    return subprocess.run([prefix + name, *map(str, arguments)], check=True, capture_output=True,
                          text=True).stdout


def registers_in(operands):
    """Bytes of a register list: {r4, r5, lr}, {d8-d15}, {s16}."""
    size = 0
    for part in re.search(r"\{(.*)\}", operands).group(1).split(","):
        first, _, last = part.strip().partition("-")
        count = int(last[1:]) - int(first[1:]) + 1 if last else 1
        size += count * (8 if first[0] == "d" else 16 if first[0] == "q" else 4)
    return size


def read_stack_use(function, mnemonic, operands):
    """What one instruction takes off the stack pointer."""
    name = mnemonic.split(".")[0]
    if name == "mov" and operands.endswith(", lr"):
        function.link = operands.split(",")[0]
    elif function.link and (operands.startswith(function.link + ",") or name.startswith(("ldm", "pop"))):
        function.link = None
    if name in ("push", "vpush") or re.match(r"v?stm(db|fd)", name) and operands.startswith("sp!"):
        function.taken += registers_in(operands)
    elif match := re.search(r"\[sp, #-(\d+)\]!", operands):
        function.taken += int(match.group(1))
    elif name in ("sub", "subw", "subs") and (match := re.match(r"sp, (?:sp, )?#(\d+)", operands)):
        function.taken += int(match.group(1))
    elif name == "pop":
        function.popped = operands
    elif name == "add" and re.match(r"sp, (sp, )?[a-z]", operands) or name == "sub" and operands.startswith("sp,") or \
            name in ("mov", "msr") and re.match(r"(sp|MSP|PSP), ", operands):
        function.variable = f"{mnemonic} {operands}"


def read_branch(function, mnemonic, operands, entries):
    """Where one instruction goes. A jump through a table stays in its function: GCC calls with bx and blx."""
    name = mnemonic.split(".")[0]
    target = re.search(r"\b([0-9a-f]+) <[^>+]+(\+0x[0-9a-f]+)?>$", operands)
    if name[0] in "bc" and target:
        address = int(target.group(1), 16)
        if address not in entries:
            # Into the middle of a function: from inside it (Thumb-1's far jump is a bl), or back from a stub that the
            # linker has put around one instruction (Cortex-A8 erratum 657417).
            address -= int((target.group(2) or "+0x0")[1:], 16)
            if entries.get(address) in (None, function) or function.name == STUB:
                return
        (function.calls if name in ("bl", "blx") else function.jumps).add(address)
    elif name == "blx" or name == "bx" and operands not in ("lr", function.link, function.popped.strip("{}")) or \
            name == "ldr" and re.match(r"pc, \[pc(, #\d+)?\]", operands):
        function.indirect.append(f"{mnemonic} {operands}")


LEAVES = re.compile(r"((b|bx|udf)(\.[nw])? |(mov|ldr|add)(\.w)? pc|(pop|ldm|ldmia)(\.[nw])? .*pc\})")


def read_image(elf):
    """{address: Function} from the disassembly."""
    text = tool("objdump", "-d", "--no-show-raw-insn", "-j", ".text", elf)
    entries = {int(address, 16): Function(name)
               for address, name in re.findall(r"^([0-9a-f]+) <(.+)>:$", text, re.MULTILINE)}
    stubs = re.findall(r"^ *\d+: ([0-9a-f]+) +\d+ FUNC +LOCAL +\S+ +\d+ *$", tool("readelf", "-sW", elf), re.MULTILINE)
    entries.update((int(address, 16) & ~1, Function(STUB)) for address in stubs)
    function, falls_through = None, False
    for line in text.splitlines():
        if match := re.match(r" *([0-9a-f]+):\t(\S+)(?:\t(.*?))?(?:\s*[;@].*)?$", line):
            address, mnemonic, operands = int(match.group(1), 16), match.group(2), (match.group(3) or "").strip()
            if address in entries:
                if function is not None and falls_through:
                    function.falls_into = address
                function, falls_through = entries[address], False
            if function is None or mnemonic.startswith((".", "nop")):  # words in front of all functions are data
                continue
            read_stack_use(function, mnemonic, operands)
            read_branch(function, mnemonic, operands, entries)
            falls_through = not LEAVES.match(f"{mnemonic} {operands}")
    return entries


def call_graphs(elf, folders):
    """The .ci files of folders, and those of link-time optimization."""
    elf = pathlib.Path(elf)
    return sorted({path for folder in folders for path in pathlib.Path(folder).rglob("*.ci")} |
                  set(elf.parent.glob(f"{glob.escape(elf.name)}.*ltrans*.ci")))


def read_call_graph(paths):
    """({name: bytes}, {name: names}) from .ci files; of functions with one name the larger."""
    frames, calls = {}, {}
    for path in paths:
        text = path.read_text(encoding="utf-8")
        for title, label in re.findall(r'^node: \{ title: "([^"]+)" label: "([^"]*)"', text, re.MULTILINE):
            name = title.rsplit(":", 1)[-1]
            if size := re.search(r"\\n(\d+) bytes \((static|dynamic|dynamic,bounded)\)", label):
                variable = size.group(2) == "dynamic"
                frames[name] = max(frames.get(name, (0, False)), (int(size.group(1)), variable))
        for source, target in re.findall(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"', text, re.MULTILINE):
            calls.setdefault(source.rsplit(":", 1)[-1], set()).add(target.rsplit(":", 1)[-1])
    return frames, calls


def initializers(elf):
    """Addresses in .init_array."""
    symbols = {name: int(value, 16) for value, name in re.findall(r"^([0-9a-f]+) \S (\S+)$", tool("nm", elf), re.MULTILINE)}
    first, last = symbols.get("init_array_begin", 0), symbols.get("init_array_end", 0)
    if first == last:
        return set()
    dump = tool("objdump", "-s", "-j", ".text", f"--start-address={first}", f"--stop-address={last}", elf)
    data = b"".join(bytes.fromhex(line[1:].split("  ")[0].split(" ", 1)[1].replace(" ", ""))
                    for line in dump.splitlines() if re.match(r" [0-9a-f]+ ", line))
    return {int.from_bytes(data[i:i + 4], "little") & ~1 for i in range(0, len(data), 4)}


@functools.lru_cache(maxsize=1)
def addresses_in(elf):
    """Words of the image's data, and halves that movw and movt put together."""
    image = pathlib.Path(elf).read_bytes()
    table, entry_size, count = struct.unpack_from("<I10xHH", image, 28)
    words = set()
    for i in range(count):
        kind, offset, _, _, size = struct.unpack_from("<5I", image, table + i * entry_size)
        if kind == 1:  # PT_LOAD
            words.update(struct.unpack_from(f"<{size // 4}I", image, offset))
    text = tool("objdump", "-d", "--no-show-raw-insn", "-j", ".text", elf)
    halves = {name: {int(value) for value in re.findall(rf"\t{name}(?:\.w)?\t\w+, #(\d+)", text)} for name in ("movw", "movt")}
    return words, halves["movw"], halves["movt"] | {0}


def pointed_at(elf, entries):
    """Functions whose address stands somewhere in the program."""
    words, low, high = addresses_in(elf)
    return {address for address in entries
            if address | 1 in words or (address | 1) & 0xFFFF in low and address >> 16 in high}


def without_template_arguments(name):
    """Angle brackets and all that is in them are left out, but for those of an operator's name."""
    name = re.sub(r"operator(<=>|->\*?|<<=?|>>=?|<=?|>=?)(?=$|[ <(])",
                  lambda match: "operator" + match.group(1).translate({ord("<"): "\1", ord(">"): "\2"}), name)
    kept, open_brackets = "", []
    for letter in name:
        if letter in "<(":
            open_brackets.append(letter)
        if "<" not in open_brackets:
            kept += letter
        if letter == ")":
            while open_brackets and open_brackets.pop() != "(":
                pass
        elif letter == ">" and open_brackets[-1:] == ["<"]:
            open_brackets.pop()
    return kept.translate({1: "<", 2: ">"}).strip()


def readable(name):
    """A function of c++filt -p as people write it."""
    name = re.sub(r"( \[clone [^]]*\])+$|(\.(constprop|isra|part|cold|lto_priv|localalias)(\.\d+)*)+$", "", name)
    return re.sub(r"\battune::v\d+_\d+_\w+::", "attune::", without_template_arguments(name))


def demangled(names):
    """C++ names without parameters, in the order of ELF names."""
    return subprocess.run([prefix + "c++filt", "-p"], input="\n".join(names), check=True, capture_output=True,
                          text=True).stdout.splitlines()


def names_of(entries):
    """{address: (ELF name, C++ name without parameters, readable name)}"""
    plain = demangled([function.name for function in entries.values()])
    return {address: (function.name, name, readable(name)) for (address, function), name in zip(entries.items(), plain)}


def resolve(address, entries, spelled, known_calls, elf):
    """Whom a call through a pointer reaches."""
    for caller, callee in known_calls:
        if any(re.fullmatch(caller, name) for name in spelled[address]):
            if callee is None:
                return initializers(elf)
            named = {other for other, names in spelled.items() if any(re.fullmatch(callee, name) for name in names)}
            if not named:
                raise Unbounded(f"{entries[address].name} calls {callee} through a pointer, which is not there")
            reached = named & pointed_at(elf, entries)
            if not reached:
                raise Unbounded(f"{entries[address].name} calls {callee} through a pointer, and no pointer holds the address of "
                                f"{', '.join(sorted(entries[other].name for other in named))}")
            return reached
    raise Unbounded(f"{entries[address].name} calls through a pointer: {entries[address].indirect[0]}")


def link(elf, folders):
    """{address: Function}, with all calls and frames."""
    entries = read_image(elf)
    frames, calls = read_call_graph(call_graphs(elf, folders))
    if not frames:
        raise Unbounded("no .ci files: compile and link with -fcallgraph-info=su")
    by_name = {function.name: address for address, function in entries.items()}
    for function in entries.values():
        if function.name in frames:
            function.frame, variable = frames[function.name]
            function.variable = "a dynamic array or alloca" if variable else None
            if "__indirect_call" in calls.get(function.name, ()) and not function.indirect:
                function.indirect.append("in its .ci file")
        elif function.falls_into is not None:
            function.jumps.add(function.falls_into)
        function.calls |= {by_name[name] for name in calls.get(function.name, ()) if name in by_name}
        if function.name in SETS_STACK_POINTER:
            function.variable = None
        if function.name == LONGJMP:
            function.indirect = []
    return entries


def components(root, edges):
    """Strongly connected components of what `root` reaches, callees before callers (Tarjan, 1972)."""
    order, low, stack, on_stack, found = {}, {}, [], set(), []

    def visit(node):
        order[node] = low[node] = len(order)
        stack.append(node)
        on_stack.add(node)
        for other in sorted(edges(node)):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in on_stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            component = stack[stack.index(node):]
            del stack[stack.index(node):]
            on_stack.difference_update(component)
            found.append(component)

    visit(root)
    return found


def bound(elf, folders, root=ROOT, known_calls=KNOWN_CALLS):
    """(bytes, [(function, bytes)] of the deepest path). Raises Unbounded."""
    entries = link(elf, folders)
    spelled = names_of(entries)
    starts = [address for address, names in spelled.items() if root in names]
    if not starts:
        raise Unbounded(f"no function {root}; one that is inlined has none: [[gnu::noinline]]")
    if len(starts) > 1:
        raise Unbounded(f"several functions {root}: {', '.join(entries[address].name for address in starts)}")
    start = starts[0]

    def edges(address):
        function = entries[address]
        if function.indirect:
            function.calls |= resolve(address, entries, spelled, known_calls, elf)
        return function.calls | function.jumps - {address}

    deepest = {}  # address: (bytes, path)
    for component in components(start, edges):
        members = [entries[address] for address in component]
        names = ", ".join(function.name for function in members)
        # Parts of a function in assembly jump among each other. Whatever calls itself is recursion.
        if any(function.calls & set(component) for function in members) or \
                len(component) > 1 and any(function.frame is not None for function in members):
            raise Unbounded(f"recursion: {names}")
        for function in members:
            if function.variable:
                raise Unbounded(f"the stack of {function.name} has no fixed size: {function.variable}")
        own = sum(function.stack() for function in members)
        below = [deepest[callee] for address in component for callee in edges(address) - set(component)]
        size, path = max(below, key=lambda entry: entry[0], default=(0, []))
        for address in component:
            deepest[address] = (own + size, [(names, own)] + path)
    return deepest[start]


def in_words(text):
    """ELF names in a text become readable ones."""
    return re.sub(r"\b_Z[\w.$]+", lambda match: readable(demangled([match.group()])[0]), text)


def fail(elf, reason, options):
    if options["--on-failure"] == "remove":
        pathlib.Path(elf).unlink()
    sys.exit(f"{elf}: {in_words(str(reason))}")


def main():
    global prefix
    options = {"--root": ROOT, "--limit": None, "--tools": prefix, "--on-failure": "keep"}
    known_calls = list(KNOWN_CALLS)
    arguments = sys.argv[1:]
    while len(arguments) > 1 and (arguments[0] in options or arguments[0] == "--calls"):
        name, value, *arguments = arguments
        if name == "--calls":
            known_calls.insert(0, tuple(value.split("=", 1)))
        else:
            options[name] = value
    if len(arguments) < 2 or arguments[0].startswith("-") or any(len(call) != 2 for call in known_calls):
        sys.exit(__doc__.split("\n\n")[1])
    prefix = options["--tools"]
    elf, *folders = arguments
    try:
        total, path = bound(elf, folders, options["--root"], known_calls)
    except Unbounded as reason:
        fail(elf, f"no bound on the stack: {reason}", options)
    if options["--limit"] is None or total > int(options["--limit"]):
        for name, size in path:
            print(f"{size:6}  {in_words(name)}")
        print(f"{total:6}  bytes at most")
    if options["--limit"] is not None and total > int(options["--limit"]):
        fail(elf, f"{options['--root']} takes {total} bytes of stack, {options['--limit']} allowed", options)


if __name__ == "__main__":
    main()

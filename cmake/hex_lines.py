#!/usr/bin/env python3
"""Restores a file that a device sent as lines of text (attune/exchange/hex_lines.hpp).

usage: hex_lines.py LOG FILE

LOG is the device's output; - is standard input. Other lines, text before "bytes " and repeated lines are ignored. If a log
contains several files, the last one is restored. If bytes are missing or damaged, every place is printed, nothing is written, and
the exit code is 1.
"""
import pathlib
import re
import sys
import zlib

DATA = re.compile(rb"bytes ([0-9a-f]{8}) ((?:[0-9a-f]{2})+) ([0-9a-f]{8})\s*$")
END = re.compile(rb"bytes end ([0-9a-f]{8}) ([0-9a-f]{8})\s*$")


def last_file(log):
    """Data lines by their offset, the end's (size, CRC) or None, and what is wrong with lines."""
    lines, end, wrong = {}, None, []
    for number, line in enumerate(log.splitlines(), 1):
        if found := END.search(line):
            end = tuple(int(part, 16) for part in found.groups())
        elif found := DATA.search(line):
            offset, data = int(found[1], 16), bytes.fromhex(found[2].decode())
            if zlib.crc32(data, offset) != int(found[3], 16):
                wrong.append(f"line {number}: damaged: its CRC is another one")
                continue
            if offset == 0 and (end or lines.get(0, data) != data):  # a file begins
                lines, end, wrong = {}, None, []
            lines[offset] = data
        elif re.search(rb"bytes (end |[0-9a-fA-F]{6,} )", line):
            wrong.append(f"line {number}: damaged: '{line[-40:].decode(errors='replace')}'")
    return lines, end, wrong


def put_together(lines, end):
    """The file, and what is wrong with it."""
    data, wrong = b"", []
    for offset in sorted(lines):
        if offset > len(data):
            wrong.append(f"bytes {len(data)} to {offset - 1} are missing")
            data += bytes(offset - len(data))
        data = data[:offset] + lines[offset]
    if not end:
        wrong.append(f"cut short behind byte {len(data)}: there is no 'bytes end'" if lines else "there are no lines of a file (bytes 00000000 …)")
    elif len(data) < end[0]:
        wrong.append(f"bytes {len(data)} to {end[0] - 1} are missing")
    elif not wrong and (len(data), zlib.crc32(data)) != end:
        wrong.append("lines of several files are mixed: the CRC of all is another one")
    return data, wrong


def main():
    if len(sys.argv) != 3 or sys.argv[1].startswith("--"):
        sys.exit(__doc__.strip())
    try:
        log = sys.stdin.buffer.read() if sys.argv[1] == "-" else pathlib.Path(sys.argv[1]).read_bytes()
        lines, end, damaged = last_file(log)
        data, wrong = put_together(lines, end)
        if wrong:
            sys.exit("\n".join(f"{sys.argv[1]}: {what}" for what in damaged + wrong))
        pathlib.Path(sys.argv[2]).write_bytes(data)
    except OSError as error:
        sys.exit(f"{error.filename}: {error.strerror}")


if __name__ == "__main__":
    main()

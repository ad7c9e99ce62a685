"""Writes every code object of the standard library with the line of each code
unit as this interpreter itself sees it: int32 first line, table length, table, number
of units, then an int32 a unit, -1 for none."""
import array
import ctypes
import glob
import marshal
import os
import struct
import sys
import types
from importlib.util import cache_from_source

addr2line = ctypes.pythonapi.PyCode_Addr2Line
addr2line.argtypes = [ctypes.py_object, ctypes.c_int]


def lines_of(code):
    units = len(code.co_code) // 2
    if not hasattr(code, "co_lines"):
        return array.array("i", [addr2line(code, 2 * unit) for unit in range(units)])
    lines = array.array("i", [-2]) * units
    for start, end, line in code.co_lines():
        for unit in range(start // 2, end // 2):
            lines[unit] = -1 if line is None else line
    return lines


def write(code):
    table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
    lines = lines_of(code)
    out.write(struct.pack("<ii", code.co_firstlineno, len(table)) + table)
    out.write(struct.pack("<i", len(lines)) + lines.tobytes())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            write(constant)


out = sys.stdout.buffer
library = os.path.dirname(os.__file__)
files = glob.glob(library + "/**/*.py", recursive=True)
for file in sorted(filter(os.path.exists, files)):
    if "/site-packages/" in file or "/dist-packages/" in file:
        continue
    cached = cache_from_source(file)
    try:
        if os.path.exists(cached):
            with open(cached, "rb") as compiled:
                write(marshal.loads(compiled.read()[16:]))
        else:
            with open(file, "rb") as source:
                write(compile(source.read(), file, "exec", dont_inherit=True))
    except (SyntaxError, ValueError):
        pass  # written for another version, to test just that

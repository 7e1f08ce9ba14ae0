#!/usr/bin/env python3
"""Translates CUDA C++ to C++ for the GPU emulator.   translate.py FROM TO FILE...

Each FILE, relative to FROM, is written to the same place below TO: a .cuh with the same name, a .cu with
".cc" appended. Lines keep their numbers. Everything else in CUDA C++ is macros and functions of the
emulator's headers.

  kernel<<<blocks, threads, bytes, stream>>>(a, b)   Launch("kernel", ...).On(blocks, ...).Run(a, b)
  __shared__ float sums[8];                          static float (&sums)[8] = ...;
  extern __shared__ float shared[];                  a pointer to the dynamic shared memory
  asm volatile("..." : "=r"(x) : "r"(y) : "memory")  RunPtx([] { return std::string_view("..."); }, {Out(x), In(y)})
"""

import os
import re
import sys


class TranslationError(Exception):
    """Code that is not understood: a message and where it is in the text."""

    def __init__(self, message, place):
        super().__init__(message)
        self.place = place


def blank_comments_and_strings(text):
    """The text with blanks for what is no code; places stay the same."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'', re.S)
    return pattern.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def closing(code, opening):
    """The place of the bracket that closes the one at `opening`: ( [ or {."""
    depth = 0
    for place in range(opening, len(code)):
        if code[place] in "([{":
            depth += 1
        elif code[place] in ")]}":
            depth -= 1
            if depth == 0:
                return place
    raise TranslationError("a bracket is not closed", opening)


def split(code, begin, end, separator):
    """Ranges of code[begin:end] between separators that are in no brackets; none if it is blank."""
    ranges = []
    depth = 0
    first = begin
    for place in range(begin, end):
        if code[place] in "([{":
            depth += 1
        elif code[place] in ")]}":
            depth -= 1
        elif code[place] == separator and depth == 0:
            ranges.append((first, place))
            first = place + 1
    ranges.append((first, end))
    return ranges


def begin_of_kernel(code, launch):
    """Where the name of the kernel before "<<<" begins: names, "::", and template arguments."""
    place = len(code[:launch].rstrip())
    if code[place - 1] == ">":
        depth = 0
        while True:
            place -= 1
            if place < 0:
                raise TranslationError("the kernel's template arguments do not begin", launch)
            if code[place] == ">" and code[place - 1] != "-":
                depth += 1
            elif code[place] == "<":
                depth -= 1
                if depth == 0:
                    break
        place = len(code[:place].rstrip())
    name = re.search(r"(?:::)?\w+(?:::\w+)*$", code[:place])
    if name is None:
        raise TranslationError("no name of a kernel before <<<", launch)
    return name.start()


def translate_launches(text, code):
    """Edits of all launches: (begin, end, replacement)."""
    for match in re.finditer(r"<<<", code):
        launch = match.start()
        begin = begin_of_kernel(code, launch)
        end = code.find(">>>", launch)
        if end < 0:
            raise TranslationError("<<< without >>>", launch)
        kernel = text[begin:launch]
        name = " ".join(kernel.split()).replace("\\", "\\\\").replace('"', '\\"')
        call = f"[=](const auto&... emulated) {{ {kernel.rstrip()}(emulated...); }}"
        gap = kernel[len(kernel.rstrip()):]
        yield begin, launch + 3, f'::gpu_emulator::Launch("{name}", {call}){gap}.On('
        yield end, end + 3, ").Run"


def translate_shared(text, code):
    """Edits of all declarations of shared variables."""
    for match in re.finditer(r"(extern\s+)?__shared__\b([^;=]*);", code):
        declaration = match.group(2)
        name = re.search(r"(\w+)\s*(?:\[[^;]*\]\s*)*$", declaration)
        if name is None or "," in re.sub(r"<.*>|\[.*?\]", "", declaration, flags=re.S):
            raise TranslationError("a declaration of one shared variable was expected", match.start())
        variable = name.group(1)
        kind = re.sub(r"__align__\(.*?\)|alignas\(.*?\)", "", declaration[:name.start()]).strip()
        if match.group(1):
            yield match.start(), match.end(), \
                f"{kind}* {variable} = reinterpret_cast<{kind}*>(::gpu_emulator::DynamicShared());"
        else:
            size = declaration[name.end(1):]
            yield match.start(), match.end(), \
                f"struct Emulated_{variable} {{ {declaration.strip()}; }};" \
                f" static ::gpu_emulator::SharedStruct<Emulated_{variable}> emulated_{variable};" \
                f" static {kind} (&{variable}){size} = emulated_{variable}.contents.{variable};" \
                f" emulated_{variable}.Enter();"


def translate_operands(text, code, ranges, function):
    """Edits of a list of operands, "constraint"(expression); None if it is something else (macros)."""
    edits = []
    for begin, end in ranges:
        if not text[begin:end].strip(" \t\n\\"):
            continue
        opening = code.find("(", begin, end)
        quote = text.find('"', begin, end)
        if opening < 0 or quote < 0:
            return None
        edits.append((quote, opening, f"::gpu_emulator::{function}"))
    return edits


def translate_asm(text, code):
    """Edits of all asm statements. One that is not understood stays: it may be left out by an #if."""
    for match in re.finditer(r"\basm\b(\s+volatile\b)?\s*\(", code):
        opening = match.end() - 1
        end = closing(code, opening)
        parts = split(code, opening + 1, end, ":")
        begin = "::gpu_emulator::RunPtx([] { return std::string_view("
        if len(parts) == 1:
            yield match.start(), opening + 1, begin
            yield end, end, "); }"
            continue
        outputs = translate_operands(text, code, split(code, *parts[1], ","), "Out")
        inputs = []
        if len(parts) > 2:
            inputs = translate_operands(text, code, split(code, *parts[2], ","), "In")
        if outputs is None or inputs is None:
            continue
        yield match.start(), opening + 1, begin
        yield from outputs + inputs
        yield parts[1][0] - 1, parts[1][0], "); }, {"
        if len(parts) > 2:
            yield parts[2][0] - 1, parts[2][0], "," if outputs and inputs else ""
        if len(parts) > 3:
            clobbers = text[parts[3][0] - 1:end]
            yield parts[3][0] - 1, end, "}" + re.sub(r'[^\n\\]', "", re.sub(r'"[^"]*"', "", clobbers))
        else:
            yield end, end, "}"


def translate(text, path):
    code = blank_comments_and_strings(text)
    edits = [*translate_launches(text, code), *translate_shared(text, code), *translate_asm(text, code)]
    for begin, end, replacement in sorted(edits, reverse=True):
        text = text[:begin] + replacement + text[end:]
    return f'#line 1 "{path}"\n{text}'


def write_if_different(path, text):
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def main():
    source, target, *files = sys.argv[1:]
    for name in files:
        path = os.path.join(source, name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        try:
            translated = translate(text, path)
        except TranslationError as error:
            line = text.count("\n", 0, error.place) + 1
            sys.exit(f"{path}:{line}: {error}")
        write_if_different(os.path.join(target, name + (".cc" if name.endswith(".cu") else "")), translated)


if __name__ == "__main__":
    main()

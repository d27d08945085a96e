"""Draws small faults by chance over all lines of the product, blind to what its tests ask."""

import random
import re
import subprocess

ROOMS = ("model", "calibrate", "data", "microbench", "predictor")
LEAST_LINES_BETWEEN = 3

# An operand that binds closer than any operator beside it.
OPERAND = r"(?:[A-Za-z_][\w.]*(?:->\w+|::\w+|\(\w*\)|\[\w+\])*|\d[\w.]*)"
BEFORE = r"(?:(?<=[(,=\[{])|(?<=&&|\|\|)|(?<=return))\s*"
AFTER = r"(?=\s*(?:[;),\]}?:]|&&|\|\|))"
OTHER_OPERATOR = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
                  "+": "-", "-": "+", "*": "/", "/": "*"}
TWINS = (("low", "high"), ("forward", "backward"), ("first", "second"), ("nodes", "workers"),
         ("push", "pull"), ("latency", "bandwidth"), ("mean", "median"), ("front", "back"),
         ("send", "receive"), ("local_batch", "global_batch"), ("rows", "columns"),
         ("lower", "upper"), ("measured", "predicted"), ("memory", "bytes"))


def closing(text, begin):
    """Behind the parenthesis that closes the one at begin; none where it is on another line."""
    depth = 0
    for i in range(begin, len(text)):
        depth += {"(": 1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i + 1
    return None


def without_texts(line):
    """The line with its literals blanked, so that nothing in them looks like code."""
    return re.sub(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'', lambda m: '"' * len(m.group()), line)


def operators(line):
    code = without_texts(line)
    for found in re.finditer(
            rf"{BEFORE}({OPERAND}) (<=|>=|==|!=|[-<>+*/]) ({OPERAND}){AFTER}", code):
        left, operator, right = found.groups()
        yield found.span(1)[0], found.end(), f"{left} {OTHER_OPERATOR[operator]} {right}"


def conditions(line):
    """One that is always or never met, or of whose parts one is forgotten."""
    found = re.match(r"\s*(?:\} else )?if \(", without_texts(line))
    if not found or (end := closing(line, found.end() - 1)) is None:
        return
    begin, end = found.end(), end - 1
    condition = without_texts(line)[begin:end]
    if ";" in condition or " = " in condition:
        return
    for operator in ("&&", "||"):
        parts = line[begin:end].split(f" {operator} ")
        if len(parts) > 1 and all(p.count("(") == p.count(")") for p in parts):
            for left_out in range(len(parts)):
                yield begin, end, f" {operator} ".join(parts[:left_out] + parts[left_out + 1:])
    yield begin, end, "false"
    yield begin, end, "true"


def numbers(line):
    code = without_texts(line)
    for found in re.finditer(r"(?<![\w.\[{])(\d+(?:\.\d+)?(?:e-?\d+)?)(?![\w.'\]])", code):
        number = found.group()
        integer = re.fullmatch(r"\d+", number)
        yield found.start(), found.end(), str(int(number) + 1) if integer else f"(1.25 * {number})"


def calls(line):
    """The other of two that are mistaken for each other; the order of two arguments."""
    for name, other in (("std::min", "std::max"), ("std::max", "std::min"), ("Min", "Max"),
                        ("Max", "Min"), ("std::floor", "std::ceil"), ("std::ceil", "std::floor")):
        for found in re.finditer(rf"(?<![\w:]){name}(?=\()", line):
            if end := closing(line, found.end()):
                yield found.start(), end, other + line[found.end():end]
    for found in re.finditer(rf"(?<=\()({OPERAND}), ({OPERAND})(?=\))", without_texts(line)):
        name = re.search(r"(?:[\w:.]|->)+$", line[:found.start() - 1])
        if name and (end := closing(line, found.start() - 1)):
            left, right = found.groups()
            yield name.start(), end, f"{name.group()}({right}, {left})"


def statements(line):
    """One that is left out."""
    found = re.fullmatch(r"\s*((?:[\w.\[\]>-]+(?:\([^()]*\))?(?:\.|->))*[\w.\[\]>-]+"
                         r"(?:(?: [-+*/|]?= )[^;]+|\(.*\)));", without_texts(line))
    if found and not re.match(r"(return|else|case|throw|using|delete|co_)\b", found.group(1)):
        yield found.start(1), found.end(1) + 1, ";"
    for found in re.finditer(r"(?<=[ ){])(return|continue|break);", without_texts(line)):
        if "case" not in line and "default" not in line:
            yield found.start(), found.end(), ";"


def twins(line):
    code = without_texts(line)
    for pair in TWINS:
        for name, other in (pair, pair[::-1]):
            pattern = rf"(?<![\w.>])[A-Za-z_]\w*(?:\.|->)(?:\w+\.)*{name}(\(\))?(?![\w(.])"
            for found in re.finditer(pattern, code):
                text = found.group()
                cut = text.rindex(name)
                yield found.start(), found.end(), text[:cut] + other + text[cut + len(name):]


def keys(line):
    """Another name of something: a key, an option, a column."""
    if not re.match(r"\s*(#|case|extern|static_assert)", line):
        for found in re.finditer(r'"([a-z]+(?:[_-][a-z]+)*)"(?!\s*")', line):
            yield *found.span(), f'"{found.group(1)}_of"'


KINDS = (operators, conditions, numbers, calls, statements, twins, keys)


def draw(root, count, seed):
    """Pairs of a file and a line of tests/mutation/faults.txt."""
    names = subprocess.check_output(["git", "ls-files", *ROOMS], cwd=root, text=True).split()
    lines = [(name, number, line)
             for name in names if name.endswith((".cc", ".h")) and "cuda" not in name
             for number, line in enumerate((root / name).read_text().splitlines())
             if not re.match(r"\s*(//|#|$)", line) and "constexpr" not in line]
    chance = random.Random(seed)
    chance.shuffle(lines)
    taken = {}
    for name, number, line in lines:
        if len(taken) == count:
            break
        if any(name == other and abs(number - line_of) < LEAST_LINES_BETWEEN
               for other, line_of in taken):
            continue
        code = re.sub(r"\s+//.*$", "", line)
        if (root / name).read_text().count(code.strip()) != 1 or "[[" in code:
            continue
        # Numbers of headers are constants, or what members are before they are set.
        kinds = [kind for kind in KINDS if kind is not numbers or name.endswith(".cc")]
        chance.shuffle(kinds)
        for kind in kinds:
            if found := list(kind(code)):
                begin, end, new = chance.choice(found)
                if code[begin - 1:begin] == "[" or code[end:end + 1] == "]":
                    continue
                text = f"{code[:begin]}[[{code[begin:end]} ==> {new}]]{code[end:]}".strip()
                taken[name, number] = text
                break
    return sorted((name, text) for (name, _), text in taken.items())

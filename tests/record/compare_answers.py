"""What differs between two files of record_answers: compare_answers.py BEFORE AFTER [--worst N]

For each column: how many answers differ by more than it may, the largest relative difference, and
the first that are too far apart. Ends with 1 where there is any.
"""
import argparse
import collections
import itertools
import math
import sys

# Largest difference by what a column is: relative, but for elasticities, which are in units of one.
MAY_DIFFER = {"answer": 1e-12, "interval": 1e-3, "elasticity": 1e-3, "learnt": 1e-6, "text": 0.0}


class Column:
    def __init__(self, how):
        self.how = how
        self.compared = 0
        self.differ = 0
        self.too_far = 0
        self.worst = 0.0
        self.examples = []


def apart(before, after, how):
    """Infinite where the two are not numbers, or not as many."""
    if before == after:
        return 0.0
    if how == "text":
        return math.inf
    old, new = before.split(";"), after.split(";")
    if len(old) != len(new):
        return math.inf
    most = 0.0
    for a, b in zip(old, new):
        if a == b:
            continue
        try:
            a, b = float(a), float(b)
        except ValueError:
            return math.inf
        if math.isnan(a) and math.isnan(b):
            continue
        size = 1.0 if how == "elasticity" else max(abs(a), abs(b))
        difference = abs(a - b) / size if size > 0 else 0.0
        most = max(most, math.inf if math.isnan(difference) else difference)
    return most


def compare(before, after, most_examples):
    """Columns by kind and name, and the lines that do not belong together."""
    columns = {}
    layout = {}
    strange = []
    for old, new in itertools.zip_longest(before, after):
        if old is None or new is None:
            strange.append("one file is longer than the other")
            break
        if old.startswith("#"):
            if old != new:
                strange.append(f"other columns: {old[:60]!r} and {new[:60]!r}")
                break
            kind, _, *names = old[1:].rstrip("\n").split("\t")
            layout[kind] = [(kind, *name.rsplit(":", 1)) for name in names]
            for of, name, how in layout[kind]:
                columns[of, name] = Column(how)
            continue
        old, new = old.rstrip("\n").split("\t"), new.rstrip("\n").split("\t")
        if old[:2] != new[:2] or len(old) != len(new):
            strange.append(f"lines of {old[:2]} and {new[:2]}")
            break
        for (kind, name, how), a, b in zip(layout[old[0]], old[2:], new[2:]):
            column = columns[kind, name]
            column.compared += 1
            if a == b:
                continue
            column.differ += 1
            difference = apart(a, b, how)
            column.worst = max(column.worst, difference)
            if difference > MAY_DIFFER[how]:
                column.too_far += 1
                if len(column.examples) < most_examples:
                    column.examples.append((old[1], difference, a, b))
    return columns, strange


def shortened(text):
    return text if len(text) < 60 else text[:57] + "..."


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--worst", type=int, default=3, help="examples of each column")
    arguments = parser.parse_args()
    with open(arguments.before) as before, open(arguments.after) as after:
        columns, strange = compare(before, after, arguments.worst)
    answers = collections.Counter()
    for (kind, name), column in columns.items():
        answers[kind] = max(answers[kind], column.compared)
        if column.differ == 0:
            continue
        print(f"{kind + ' ' + name:42} {column.how:10} {column.compared:8} compared, "
              f"{column.differ:8} differ, {column.too_far:8} too far, worst {column.worst:.2g}")
        for number, difference, a, b in column.examples:
            print(f"    {number}: {difference:.2g} apart, {shortened(a)} became {shortened(b)}")
    for line in strange:
        print(line)
    print(", ".join(f"{count} {kind}" for kind, count in answers.items()) + " compared")
    sys.exit(1 if strange or not answers or any(c.too_far for c in columns.values()) else 0)


if __name__ == "__main__":
    main()

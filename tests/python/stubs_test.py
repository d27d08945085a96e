"""The stubs say what the modules have: names, arguments in order, and which have a default."""

import ast
import importlib
import re
import unittest
from pathlib import Path

import stepcast
import support

PACKAGE = Path(stepcast.__file__).resolve().parent
# Of every class, or made by the machinery.
IGNORED = {"__init__", "__module__", "__doc__", "__dict__", "__weakref__"}


def arguments_of(function):
    """[(name, has a default)] of a stub's function, without self."""
    spec = function.args
    positional = [*spec.posonlyargs, *spec.args]
    defaults = [None] * (len(positional) - len(spec.defaults)) + spec.defaults
    listed = [(a.arg, d is not None) for a, d in zip(positional, defaults) if a.arg != "self"]
    listed += [(a.arg, d is not None) for a, d in zip(spec.kwonlyargs, spec.kw_defaults)]
    if spec.kwarg is not None:
        listed.append(("**", True))
    return listed


def arguments_shown(doc):
    """The same of the first line of what pybind11 documents."""
    line = doc.strip().splitlines()[0]
    inside = line[line.index("(") + 1:line.rindex(")")]
    listed = []
    depth = 0
    part = ""
    for c in inside + ",":
        depth += c in "[({"
        depth -= c in "])}"
        if c == "," and depth == 0:
            if part.strip() not in ("", "*"):
                name = re.match(r"\s*(\**\w*)", part).group(1)
                listed.append(("**", True) if name.startswith("**") else (name, "=" in part))
            part = ""
        else:
            part += c
    return [argument for argument in listed if argument[0] not in ("self", "arg0")]


class Stubs(unittest.TestCase):
    def check(self, name):
        module = importlib.import_module("stepcast." + name)
        tree = ast.parse((PACKAGE / f"{name}.pyi").read_text())
        classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
        functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        public = {n for n in dir(module) if not n.startswith("_")}
        self.assertEqual(set(classes) | set(functions), public)
        for function, node in functions.items():
            self.assertEqual(arguments_of(node), arguments_shown(getattr(module, function).__doc__),
                             function)
        for class_name, node in classes.items():
            self.check_class(getattr(module, class_name), node)

    def check_class(self, cls, node):
        if issubclass(cls, Exception):
            stated = {n.target.id for n in node.body}
            self.assertEqual(stated, {n for n in vars(cls) if not n.startswith("_")})
            return
        methods = {n.name: n for n in node.body if isinstance(n, ast.FunctionDef)}
        public = {n for n in vars(cls) if not n.startswith("_")}
        self.assertEqual(set(methods) - {"__init__"}, public, cls.__name__)
        for name, method in methods.items():
            own = vars(cls).get(name)
            label = f"{cls.__name__}.{name}"
            is_property = any(isinstance(d, ast.Name) and d.id == "property"
                              for d in method.decorator_list)
            self.assertEqual(isinstance(own, property), is_property, label)
            if is_property:
                self.assertTrue(own.__doc__, f"{label} is not documented")
            elif cls is stepcast.Plan and name == "__init__":
                keywords = [argument for argument, _ in arguments_of(method)]
                shown = re.findall(r"^    (\w+) : ", cls.__doc__, re.MULTILINE)
                self.assertEqual(keywords, shown)
            else:
                self.assertEqual(arguments_of(method), arguments_shown(own.__doc__), label)

    def test_core(self):
        self.check("_core")

    def test_calibrate(self):
        try:
            importlib.import_module("stepcast._calibrate")
        except ImportError:
            self.skipTest("built without calibration")
        self.check("_calibrate")

    def test_the_package_shows_what_it_lists(self):
        for name in stepcast.__all__:
            self.assertTrue(hasattr(stepcast, name), name)
        for name in ("Plan", "Predictor", "CompiledPlan", "InputError"):
            self.assertEqual(getattr(stepcast, name).__module__, "stepcast")
        self.assertTrue((PACKAGE / "py.typed").exists())

    def test_docstrings_state_units(self):
        self.assertIn("[s]", stepcast.CompiledPlan.predict.__doc__)
        for unit in ("[bytes]", "[bytes/s]", "[s]", "[samples/s]"):
            self.assertIn(unit, stepcast.Plan.__doc__)


if __name__ == "__main__":
    support.main()

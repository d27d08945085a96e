"""tools/api_pages reads C++ as we write it, and its page of the headers is up to date."""

import importlib.machinery
import importlib.util
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
TOOL = Path(__file__).resolve().parent.parent.parent / "tools/api_pages"
loader = importlib.machinery.SourceFileLoader("api_pages", str(TOOL))
api_pages = importlib.util.module_from_spec(importlib.util.spec_from_loader("api_pages", loader))
loader.exec_module(api_pages)


def declarations(code):
    text = "namespace stepcast {\n" + code + "\n}  // namespace\n"
    return "\n".join(api_pages.declarations(text))


class Declarations(unittest.TestCase):
    def test_functions_lose_body_and_keep_comment(self):
        code = "// Doubles.\ninline int Twice(int x = 1) {\n  return {2 * x};\n}"
        self.assertEqual(declarations(code), "// Doubles.\nint Twice(int x = 1);")

    def test_templates_and_wrapped_arguments(self):
        code = "template <class T>\nT Sum(const T& a,\n      const T& b) {\n  return a + b;\n}"
        self.assertEqual(declarations(code),
                         "template <class T>\nT Sum(const T& a,\n      const T& b);")

    def test_classes_show_what_is_public(self):
        code = ("class Box {\n public:\n  explicit Box(int x) : x_(x) {}\n\n  // Its edge.\n"
                "  int x() const { return x_; }\n\n private:\n  int x_;  // hidden\n};")
        self.assertEqual(declarations(code),
                         "class Box {\n  Box(int x);\n\n  // Its edge.\n  int x() const;\n};")

    def test_members_keep_comments_behind_them(self):
        code = ("struct P {\n  int a = 1;   // first,\n               // in two lines\n"
                "  std::map<int, F(T)> b = {};\n};")
        self.assertEqual(declarations(code), code)

    def test_enumerations_and_short_constants_stand_as_they_are(self):
        code = ("enum class E { kA, kB };  // two\n"
                "inline constexpr int kE[] = {1,\n                              2};")
        self.assertIn("enum class E { kA, kB };  // two\nconstexpr int kE[] = {1,",
                      declarations(code))

    def test_what_is_not_the_users_is_left_out(self):
        self.assertEqual(declarations("struct Later;\nnamespace internal {\nint Hidden();\n}\n"
                                      "extern template int Sum<int>();\n"
                                      "template <>\nstruct Box<int> {\n  int x;\n};"), "")

    def test_quotes_and_comments_hide_brackets(self):
        code = "// {(\nconst char* Name(char c = '{', const char* s = \"}\");\nint Next();"
        self.assertEqual(declarations(code), code)

    def test_what_it_does_not_understand_is_an_error(self):
        for code in ("MACRO(x) y z", "int f() {", "= 5;"):
            with self.assertRaises(api_pages.NotUnderstood, msg=code):
                declarations(code)


class Paragraphs(unittest.TestCase):
    def test_first_one_ends_with_a_sentence(self):
        self.assertEqual(api_pages.first_paragraph("One.\n\nTwo."), "One.")
        self.assertEqual(api_pages.first_paragraph("One. So that:\n\n  x"), "One.")
        self.assertEqual(api_pages.first_paragraph("The rate:\n\n  x"), "The rate.")


class Page(unittest.TestCase):
    def test_is_up_to_date(self):
        self.assertEqual(api_pages.main(["--check", "cpp"]), 0)

    def test_names_every_installed_header(self):
        page = api_pages.cpp_page()
        headers = api_pages.installed_headers()
        self.assertIn("predictor/predictor.h", headers)
        self.assertNotIn("predictor/cli/command.h", headers)
        for header in headers:
            self.assertIn(header, page)

    def test_refuses_other_arguments(self):
        self.assertEqual(api_pages.main([]), 2)
        self.assertEqual(api_pages.main(["java"]), 2)


if __name__ == "__main__":
    unittest.main()

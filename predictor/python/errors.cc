// stepcast.InputError: the one error that bad input causes, with its parts as attributes.
#include <climits>
#include <cmath>
#include <exception>

#include "predictor/python/bindings.h"

namespace stepcast::python {
namespace {

constexpr const char* kDoc =
    "Bad input, named so that it can be mended.\n\n"
    "Attributes (empty, or 0, where there is none)\n"
    "    file, line : where the value was read; line counts from 1\n"
    "    key : name of the value: a key of the file, or an argument of the call\n"
    "    value : what was given\n"
    "    problem : what is wrong with it\n"
    "    allowed : what is allowed instead";

// Lives as long as the process.
PyObject* g_input_error = nullptr;

void Raise(const InputError& error) {
  py::object instance = py::reinterpret_borrow<py::object>(g_input_error)(error.what());
  instance.attr("file") = error.place().file;
  instance.attr("line") = error.place().line;
  instance.attr("key") = error.place().key;
  instance.attr("value") = error.value();
  instance.attr("problem") = error.problem();
  instance.attr("allowed") = error.allowed();
  PyErr_SetObject(g_input_error, instance.ptr());
}

}  // namespace

void BindErrors(py::module_* m) {
  py::dict defaults;
  for (const char* name : {"file", "key", "value", "problem", "allowed"}) defaults[name] = "";
  defaults["line"] = 0;
  g_input_error =
      PyErr_NewExceptionWithDoc("stepcast.InputError", kDoc, PyExc_ValueError, defaults.ptr());
  if (g_input_error == nullptr) throw py::error_already_set();
  m->attr("InputError") = py::reinterpret_borrow<py::object>(g_input_error);
  // NOLINTNEXTLINE(performance-unnecessary-value-param): the type that pybind11 asks for
  py::register_exception_translator([](std::exception_ptr thrown) {
    try {
      if (thrown) std::rethrow_exception(thrown);
    } catch (const InputError& error) {
      Raise(error);
    }
  });
}

int IntOf(py::handle value, const char* name) {
  const bool is_float =
      PyFloat_Check(value.ptr()) != 0 &&
      std::floor(PyFloat_AS_DOUBLE(value.ptr())) == PyFloat_AS_DOUBLE(value.ptr());
  const py::object whole = py::reinterpret_steal<py::object>(
      is_float ? PyNumber_Long(value.ptr()) : PyNumber_Index(value.ptr()));
  if (!whole) {
    PyErr_Clear();
    throw InputError(Keyword(name), ReprOf(value), "is not a whole number", "an int");
  }
  int overflow = 0;
  const long long number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow != 0 || number < INT_MIN || number > INT_MAX) {
    throw InputError(Keyword(name), ReprOf(value), "is out of range",
                     std::to_string(INT_MIN) + " to " + std::to_string(INT_MAX));
  }
  return static_cast<int>(number);
}

double RealOf(py::handle value, const char* name) {
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    throw InputError(Keyword(name), ReprOf(value), "is not a number", "a float");
  }
  return number;
}

std::string TextOf(py::handle value, const char* name) {
  if (!py::isinstance<py::str>(value)) {
    throw InputError(Keyword(name), ReprOf(value), "is not a text", "a str");
  }
  return value.cast<std::string>();
}

std::string Escaped(const std::string& text) {
  std::string html;
  for (const char c : text) {
    switch (c) {
      case '&':
        html += "&amp;";
        break;
      case '<':
        html += "&lt;";
        break;
      case '>':
        html += "&gt;";
        break;
      case '"':
        html += "&quot;";
        break;
      default:
        html += c;
    }
  }
  return html;
}

}  // namespace stepcast::python

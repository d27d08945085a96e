// stepcast man: manual pages in roff, made of the words that --help prints.
#include <fmt/format.h>

#include <cctype>
#include <filesystem>
#include <sstream>

#include "data/io/text_file.h"
#include "predictor/cli/command.h"

namespace stepcast::cli {
namespace {

constexpr std::size_t kExampleWidth = 72;

// As it is typed: roff would take some characters for commands, others for typographic ones.
std::string Escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\e";
        break;
      case '-':
        out += "\\-";
        break;
      case '\'':
        out += "\\(aq";
        break;
      case '`':
        out += "\\(ga";
        break;
      case '^':
        out += "\\(ha";
        break;
      case '~':
        out += "\\(ti";
        break;
      default:
        out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

// Lines that are filled, save indented ones, which stay as they are.
std::string Text(const std::string& text) {
  std::string out;
  bool as_it_is = false;
  const auto set_as_it_is = [&](bool keep) {
    if (keep != as_it_is) out += keep ? ".nf\n" : ".fi\n";
    as_it_is = keep;
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    set_as_it_is(line.starts_with(' '));
    out += line.empty() ? ".PP\n" : Escape(line) + '\n';
  }
  set_as_it_is(false);
  return out;
}

// Sentences wrap at the left, without hyphens that could be copied.
std::string Head(const std::string& name, const std::string& summary) {
  std::string title = name;
  for (char& c : title) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(
      ".TH {} 1 \"\" \"stepcast {}\" \"User Commands\"\n.nh\n.ad l\n"
      ".SH NAME\n{} \\- {}\n.SH SYNOPSIS\n",
      Escape(title), STEPCAST_VERSION, Escape(name), Escape(summary));
}

std::string Item(const std::string& term, const std::string& text) {
  return ".TP\n" + term + "\n" + Escape(text) + "\n";
}

std::string OptionItem(const Help::Option& option) {
  std::string term = "\\fB" + Escape("--" + option.name) + "\\fR";
  if (!option.placeholder.empty()) {
    term += (option.value_is_optional ? "" : " ") + ("\\fI" + Escape(option.placeholder) + "\\fR");
  }
  return Item(term, option.text);
}

std::string Reference(const std::string& page) { return "\\fB" + Escape(page) + "\\fR(1)"; }

std::string PageName(const Command& command) { return std::string("stepcast-") + command.name; }

std::string CommandPage(const Command& command) {
  const Help help = ReadHelp(command);
  std::string page = Head(PageName(command), command.summary);
  std::istringstream forms(help.usage);
  const char* before = "";
  for (std::string form; std::getline(forms, form); before = ".br\n") {
    page += before + Escape(form.substr(form.find_first_not_of(' '))) + "\n";
  }
  page += ".SH DESCRIPTION\n" + Text(help.what) + ".SH OPTIONS\n";
  for (const Help::Option& option : help.options) page += OptionItem(option);
  page += ".SH EXIT STATUS\n" + Escape(kExitCodes) + "\n";
  if (!help.examples.empty()) {
    page += ".SH EXAMPLES\n" + Text(BreakCommands(help.examples, kExampleWidth));
  }
  return page + ".SH SEE ALSO\n" + Reference("stepcast") + "\n";
}

std::string ProgramPage() {
  std::string page = Head("stepcast", "forecasts the step time of data-parallel training") +
                     "stepcast COMMAND [options]\n.SH DESCRIPTION\n" + Text(kWhatItDoes) +
                     ".SH COMMANDS\n";
  std::string pages;
  for (const Command& command : Commands()) {
    page += Item("\\fB" + Escape(command.name) + "\\fR", command.summary);
    pages += (pages.empty() ? "" : ",\n") + Reference(PageName(command));
  }
  return page + ".SH OPTIONS\n" + Item("\\fB\\-\\-help\\fR", "list the commands") +
         Item("\\fB\\-\\-version\\fR", "print the version") + ".SH EXIT STATUS\n" +
         Escape(kExitCodes) + "\n.SH ENVIRONMENT\n" +
         Item("\\fBSTEPCAST_DATA\\fR",
              "the folder with the shipped machines, instead of the installed one") +
         Item("\\fBNO_COLOR\\fR", "no colours on a terminal") +
         Item("\\fBCOLUMNS\\fR", "where sentences wrap, when the output is no terminal") +
         ".SH SEE ALSO\n" + pages + "\n";
}

}  // namespace

int RunMan(const std::vector<std::string>& arguments) {
  po::options_description options("options");
  options.add_options()("output", OptionValue("FOLDER"),
                        "write all pages into this folder, as stepcast.1, stepcast-predict.1, ...")(
      "help", "print this text");
  po::options_description all;
  all.add(options).add_options()("command", po::value<std::string>());
  const Arguments args("man", all, "command", arguments);
  if (args.Has("help")) {
    PrintHelp("stepcast man [COMMAND]\n       stepcast man --output FOLDER",
              "Prints the manual page of the program, or of a command.", options,
              "  stepcast man predict | man -l -\n  stepcast man --output share/man/man1\n");
    return kDone;
  }
  if (args.Has("output")) {
    if (args.Has("command")) {
      throw InputError(OptionPlace("output"), "", "writes the pages of all commands",
                       "no COMMAND beside it");
    }
    const std::filesystem::path folder = args.Text("output");
    WriteTextFile((folder / "stepcast.1").string(), ProgramPage());
    for (const Command& command : Commands()) {
      WriteTextFile((folder / (PageName(command) + ".1")).string(), CommandPage(command));
    }
    return kDone;
  }
  if (!args.Has("command")) {
    Print(ProgramPage());
    return kDone;
  }
  const std::string name = args.Text("command");
  for (const Command& command : Commands()) {
    if (name != command.name) continue;
    Print(CommandPage(command));
    return kDone;
  }
  throw InputError({"", 0, "COMMAND"}, name, "is not a command", "see stepcast --help");
}

}  // namespace stepcast::cli

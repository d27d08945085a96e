// The documentation, run. In README.md and docs/**/*.md
//
//   ```console blocks are run in a folder of the page's own, in order: a line "$ COMMAND"
//   (continued behind a backslash) is given to bash, and the lines below it are what it must print;
//   a line "..." stands for any lines. `stepcast` and `./run` are the program, data/ is the one of
//   the source tree. A block marked needs=NAME wants a public data set, and is left out where there
//   is none. A block under <!-- file: NAME --> is written to that file before what follows it is
//   run. Between <!-- generated: NAME --> and <!-- end --> stands what a function here makes of the
//   code; other texts than pages have the same, in comments of their own.
//   ```cpp blocks are files of snippets/. Pictures are what the page's commands draw, or another
//   test. Links lead somewhere, [@keys] are in references.bib, options and JSON keys are in the
//   reference.
//
// Numbers may differ by kNoise: another processor rounds a fit differently. Everything else is
// compared to the letter, save the width of columns, rules and bars, which follow the numbers.
//
// STEPCAST_UPDATE_DOCS=1 writes outputs, tables and pictures anew instead of comparing them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "data/io/runs.h"
#include "data/plan/fields.h"
#include "data/record/workload.h"
#include "model/catalog/catalog.h"
#include "model/step/parameter_specs.h"
#include "model/step/parameters.h"
#include "tests/docs/plan_texts.h"
#include "tests/support/changed_plans.h"
#include "tests/support/datasets.h"
#include "tests/support/markdown.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

const std::string kSource = STEPCAST_SOURCE_DIR;
const std::string kAnyLines = "...";
// By tests/calibrate/extrapolation_page_test.cc.
const std::set<std::string> kDrawnByOtherTests = {"extrapolation.svg"};

bool Updating() { return std::getenv("STEPCAST_UPDATE_DOCS") != nullptr; }

std::string Join(const Lines& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  return text;
}

void Save(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

Lines Pages() { return Split(STEPCAST_PAGES, ','); }

std::string ReadPage(const std::string& page) {
  const std::string text = FileContent(kSource + "/" + page);
  EXPECT_FALSE(text.empty()) << page;
  return text;
}

// Where commands run: a folder with `stepcast`, `./run`, the snippets and data/.
class Sandbox {
 public:
  Sandbox() {
    fs::create_symlink(kSource + "/data", folder_.Path("data"));
    fs::create_directory(folder_.Path(".bin"));
    fs::create_symlink(STEPCAST_PROGRAM, folder_.Path(".bin/stepcast"));
    fs::create_symlink(STEPCAST_PROGRAM, folder_.Path("run"));
    for (const auto& snippet : fs::directory_iterator(STEPCAST_SNIPPETS)) {
      fs::create_symlink(snippet.path(), folder_.path() / snippet.path().filename());
    }
    for (const char* name : {"LC_ALL", "LC_CTYPE", "COLUMNS", "STEPCAST_DATA"}) unsetenv(name);
    setenv("LANG", "C.UTF-8", 1);
  }

  const std::string& path() const { return folder_.path(); }
  void Write(const std::string& name, const Lines& lines) { folder_.Write(name, Join(lines)); }

  // Makes a data set visible as a folder of its name; false where this machine has none.
  bool Provide(const std::string& dataset) {
    const std::optional<std::string> folder = DatasetFolder(dataset);
    if (!folder) return false;
    if (!fs::exists(folder_.Path(dataset))) {
      fs::create_symlink(fs::canonical(*folder), folder_.Path(dataset));
    }
    return true;
  }

  // What the command prints on both streams, and its exit code.
  std::pair<Lines, int> Run(const std::string& command) {
    folder_.Write(".command", "PATH=$PWD/.bin:$PATH\n" + command + "\n");
    FILE* pipe = popen(("cd '" + path() + "' && bash .command </dev/null 2>&1").c_str(), "r");
    std::string text;
    char buffer[4096];
    while (const std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) text.append(buffer, n);
    const int status = pclose(pipe);
    return {LinesOf(text), WIFEXITED(status) ? WEXITSTATUS(status) : -1};
  }

 private:
  TempFolder folder_;
};

// By how much two printings of one number may differ: as a share, and where it is near zero.
constexpr double kNoise = 0.02;
constexpr double kNoiseNearZero = 0.05;

// The text cut into numbers and what stands between them, without white space, rules and the
// lengths of bars.
std::vector<std::string> Pieces(const std::string& text) {
  static const std::regex piece(R"re([0-9][0-9,]*(?:\.[0-9]+)?(?:e[+-]?[0-9]+)?|[^0-9\s]+)re");
  static const std::regex fill("(\xe2[\x94-\x96][\x80-\xbf]|-)\\1+");
  std::vector<std::string> pieces;
  for (auto it = std::sregex_iterator(text.begin(), text.end(), piece);
       it != std::sregex_iterator(); ++it) {
    const std::string shown = std::regex_replace(it->str(), fill, "$1");
    if (shown != "\xe2\x94\x80") pieces.push_back(shown);
  }
  return pieces;
}

bool SameUpToNoise(const std::string& said, const std::string& actual) {
  if (said == actual) return true;
  const std::vector<std::string> a = Pieces(said);
  const std::vector<std::string> b = Pieces(actual);
  if (a.size() != b.size()) return false;
  const auto number = [](std::string text) {
    text.erase(std::remove(text.begin(), text.end(), ','), text.end());
    return std::strtod(text.c_str(), nullptr);
  };
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const bool signs = (a[i] == "+" || a[i] == "-") && (b[i] == "+" || b[i] == "-");
    if (signs) continue;  // of a number near zero; a larger one differs in the next piece
    if (!std::isdigit(static_cast<unsigned char>(a[i][0])) ||
        !std::isdigit(static_cast<unsigned char>(b[i][0]))) {
      return false;
    }
    const double x = number(a[i]);
    const double y = number(b[i]);
    if (std::abs(x - y) > std::max(kNoise * std::max(x, y), kNoiseNearZero)) return false;
  }
  return true;
}

// Whether `actual` is what a page says, in which a line "..." stands for any lines. Who writes
// pages anew writes them to the letter, so that the numbers of one page belong together.
bool Matches(const Lines& said, const Lines& actual, std::size_t i = 0, std::size_t j = 0) {
  const auto same = [&](const std::string& a, const std::string& b) {
    return Updating() ? a == b : SameUpToNoise(a, b);
  };
  if (i == said.size()) return j == actual.size();
  if (said[i] == kAnyLines) {
    for (std::size_t k = j; k <= actual.size(); ++k) {
      if (Matches(said, actual, i + 1, k)) return true;
    }
    return false;
  }
  return j < actual.size() && same(said[i], actual[j]) && Matches(said, actual, i + 1, j + 1);
}

// What the page should say instead: as many lines as before stay in front of and behind one "...".
Lines Abridged(const Lines& said, const Lines& actual) {
  const auto gap = std::find(said.begin(), said.end(), kAnyLines);
  if (gap == said.end()) return actual;
  const auto head = gap - said.begin();
  const auto tail = said.end() - gap - 1;
  if (std::find(gap + 1, said.end(), kAnyLines) != said.end() ||
      head + tail >= static_cast<std::ptrdiff_t>(actual.size())) {
    return actual;
  }
  Lines lines(actual.begin(), actual.begin() + head);
  lines.push_back(kAnyLines);
  lines.insert(lines.end(), actual.end() - tail, actual.end());
  return lines;
}

// ---- Tables made of the code.

std::string Short(double value) {
  std::ostringstream text;
  text.precision(3);
  text << value;
  return text.str();
}

std::string TableRow(const Lines& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row.append(" ").append(cell).append(" |");
  return row;
}

// The part of an id before the slash.
std::string GroupOf(const std::string& id) { return id.substr(0, id.find('/')); }

// As code, so that no character of a formula is taken for markup.
std::string Code(const std::string& text) { return "`" + text + "`"; }

// What a cell must not hold: the bar that ends it.
std::string Cell(const std::string& text) {
  return std::regex_replace(text, std::regex(R"(\|)"), R"(\|)");
}

// A link from a page of the reference to a file, or to its section.
std::string LinkTo(const std::string& text, const std::string& path) {
  return "[" + text + "](" + fs::path(path).lexically_relative("docs/reference").string() + ")";
}

// Header with the function, page and test.
std::string HomeCell(const Home& home) {
  return LinkTo(Code(home.function), home.files.header) + ", " +
         LinkTo("derived", std::string(home.files.page) + "#" + home.section) + ", " +
         LinkTo("tested", home.files.test);
}

// Whole steps differ in what the ids say and in nothing else that a table shows.
constexpr const char* kWholeSteps = "step";

// The catalogue, a table for each first part of an id, in the catalogue's order.
Lines ModelTables() {
  // Longer ranges of validity are said once in a table.
  constexpr std::size_t kLong = 60;
  std::vector<std::string> groups;
  std::map<std::string, Lines> rows;
  std::map<std::string, std::map<std::string, std::string>> said;  // where in the group
  std::string steps;
  for (const Model<double>& model : Catalog<double>()) {
    if (GroupOf(model.id) == kWholeSteps) {
      steps.append(steps.empty() ? "" : ", ").append(Code(model.id));
    }
  }
  for (const Model<double>& model : Catalog<double>()) {
    const std::string group = GroupOf(model.id);
    const bool whole_step = group == kWholeSteps;
    if (rows[group].empty()) {
      groups.push_back(group);
    } else if (whole_step) {
      continue;
    }
    std::string formula = model.formula;
    if (formula.find(model.constants) == std::string::npos) {
      formula.append("; ").append(model.constants);
    }
    const auto [first, fresh] = said[group].try_emplace(model.validity, model.id);
    const bool repeated = !fresh && first->first.size() > kLong;
    rows[group].push_back(TableRow(
        {whole_step ? steps : Code(model.id),
         whole_step ? "A whole step, or a worker's cycle, with every parameter as an input; the "
                      "id names the exchange, the loss or the overlap."
                    : Cell(model.sentence),
         Code(Cell(formula)), repeated ? "as " + Code(first->second) : Cell(model.validity),
         Cell(model.source), HomeCell(model.home)}));
  }
  Lines page;
  for (const std::string& group : groups) {
    page.insert(page.end(), {"", "### " + group, "",
                             "| id | what it says | formula | holds for | source | where |",
                             "|---|---|---|---|---|---|"});
    page.insert(page.end(), rows[group].begin(), rows[group].end());
  }
  page.push_back("");
  return page;
}

template <std::size_t N>
Lines ParameterTable(const std::array<ParameterSpec, N>& specs) {
  Lines table = {
      "| parameter | unit | prior | range | what it is | where the prior comes from | read by |",
      "|---|---|---|---|---|---|---|"};
  for (const ParameterSpec& spec : specs) {
    const std::string reader(spec.model);
    table.push_back(
        TableRow({std::string(spec.name), spec.unit.empty() ? "1" : std::string(spec.unit),
                  Short(spec.prior) + " x/ " + Short(std::exp(spec.prior_log_sd)),
                  Short(spec.low) + " to " + Short(spec.high), std::string(spec.meaning),
                  std::string(spec.source), "[" + Code(reader) + "](#" + GroupOf(reader) + ")"}));
  }
  return table;
}

Lines Generated(const std::string& name) {
  static const std::map<std::string, std::function<Lines()>> kTables = {
      {"models", ModelTables},
      {"cluster parameters", [] { return ParameterTable(kClusterParameterSpecs); }},
      {"workload parameters", [] { return ParameterTable(kWorkloadParameterSpecs); }},
      {"host parameters", [] { return ParameterTable(std::array{kComputeSlowdownSpec}); }},
      {"plan options", PlanOptionTable},
      {"plan columns", PlanColumnTable},
      {"plan keys", PlanKeyTable},
  };
  return kTables.at(name)();
}

// Holds the lines of a file between "COMMENT generated: NAME" and "COMMENT end" to what `make`
// makes, which is told what they say.
void HoldRegion(const std::string& path, const std::string& comment, const std::string& name,
                const std::function<Lines(const Lines&)>& make) {
  const std::string file = kSource + "/" + path;
  const Lines lines = LinesOf(FileContent(file));
  const auto is = [&](const std::string& mark) {
    return [mark = comment + " " + mark](const std::string& line) {
      return line.substr(std::min(line.find_first_not_of(' '), line.size())) == mark;
    };
  };
  const auto begin = std::find_if(lines.begin(), lines.end(), is("generated: " + name));
  const auto end = std::find_if(begin, lines.end(), is("end"));
  ASSERT_NE(end, lines.end()) << path << " has no lines that are generated: " << name;
  const Lines said(begin + 1, end);
  const Lines fresh = make(said);
  if (said == fresh) return;
  if (!Updating()) {
    EXPECT_EQ(Join(said), Join(fresh)) << path << ": STEPCAST_UPDATE_DOCS=1 writes it anew.";
    return;
  }
  Lines text(lines.begin(), begin + 1);
  text.insert(text.end(), fresh.begin(), fresh.end());
  text.insert(text.end(), end, lines.end());
  Save(file, Join(text));
}

// ---- One page.

class PageRun {
 public:
  explicit PageRun(const std::string& page) : page_(page), lines_(LinesOf(ReadPage(page))) {}

  void Go() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const std::string& line = lines_[i];
      out_.push_back(line);
      if (const std::string name = Marker(line, "file"); !name.empty()) {
        file_ = name;
      } else if (const std::string snippet = Marker(line, "snippet"); !snippet.empty()) {
        snippet_ = snippet;
      } else if (const std::string table = Marker(line, "generated"); !table.empty()) {
        const std::size_t first = i + 1;
        Replace(Until("<!-- end -->", &i), Generated(table), first);
        out_.push_back(lines_[i]);
      } else if (line.starts_with("```")) {
        const std::size_t first = i + 1;
        Block(line.substr(3), Until("```", &i), first);
        out_.push_back(lines_[i]);
      }
    }
    CheckPictures();
    if (Updating() && out_ != lines_) Save(kSource + "/" + page_, Join(out_));
  }

  const std::set<std::string>& missing() const { return missing_; }

 private:
  static constexpr const char* kHint = "\nSTEPCAST_UPDATE_DOCS=1 writes it anew.";

  std::string Place(std::size_t i) const { return page_ + ":" + std::to_string(i + 1); }

  // NAME of a line "<!-- KIND: NAME -->".
  static std::string Marker(const std::string& line, const std::string& kind) {
    const Lines found = FindAll(line, "^<!-- " + kind + ": (.*) -->$");
    return found.empty() ? "" : found[0];
  }

  // The lines behind *i up to one that is `end`, at which *i is left.
  Lines Until(const std::string& end, std::size_t* i) {
    Lines block;
    while (++*i < lines_.size() && lines_[*i] != end) block.push_back(lines_[*i]);
    if (*i == lines_.size()) throw std::runtime_error(page_ + " ends before " + end);
    return block;
  }

  // What the page says from line `first` on, and what it has to say.
  void Replace(const Lines& said, const Lines& fresh, std::size_t first) {
    if (!Updating()) {
      EXPECT_EQ(Join(said), Join(fresh)) << Place(first) << kHint;
    }
    out_.insert(out_.end(), fresh.begin(), fresh.end());
  }

  void Block(const std::string& info, const Lines& block, std::size_t first) {
    Lines fresh = block;
    if (!file_.empty()) {
      sandbox_.Write(std::exchange(file_, ""), block);
    } else if (info == "cpp") {
      EXPECT_FALSE(snippet_.empty()) << Place(first) << ": C++ that nothing compiles";
      const std::string name = std::exchange(snippet_, "");
      Replace(block, LinesOf(FileContent(kSource + "/tests/docs/snippets/" + name + ".cc")), first);
      return;
    } else if (info.starts_with("console") && Provided(info)) {
      fresh = Console(block, first);
    }
    out_.insert(out_.end(), fresh.begin(), fresh.end());
  }

  // Whether the data sets that a block needs are here.
  bool Provided(const std::string& info) {
    bool all = true;
    for (const std::string& dataset : FindAll(info, "needs=(\\S+)")) {
      if (sandbox_.Provide(dataset)) continue;
      missing_.insert(dataset);
      all = false;
    }
    return all;
  }

  Lines Console(const Lines& block, std::size_t first) {
    Lines fresh;
    for (std::size_t i = 0; i < block.size();) {
      const std::size_t at = i;
      EXPECT_TRUE(block[i].starts_with("$ ")) << Place(first + i) << " is no command";
      std::string command = block[i].substr(std::min<std::size_t>(2, block[i].size()));
      fresh.push_back(block[i++]);
      while (command.ends_with("\\") && i < block.size()) {
        command += "\n" + block[i];
        fresh.push_back(block[i++]);
      }
      Lines said;
      while (i < block.size() && !block[i].starts_with("$ ")) said.push_back(block[i++]);
      const auto [actual, code] = sandbox_.Run(command);
      // An error is one line that says so; another code than 0 is shown by the page itself.
      const bool error = code == 2 && actual.size() == 1 && actual[0].starts_with("stepcast: ");
      EXPECT_TRUE(code == 0 || error) << Place(first + at) << ": exit code " << code << " of\n"
                                      << command << "\n"
                                      << Join(actual);
      if (Matches(said, actual)) {
        fresh.insert(fresh.end(), said.begin(), said.end());
        continue;
      }
      if (!Updating()) {
        EXPECT_EQ(Join(said), Join(actual)) << Place(first + at) << ": " << command << kHint;
      }
      const Lines abridged = Abridged(said, actual);
      fresh.insert(fresh.end(), abridged.begin(), abridged.end());
    }
    return fresh;
  }

  void CheckPictures() {
    for (const std::string& link : FindAll(Join(lines_), "!\\[[^\\]]*\\]\\(([^)]+\\.svg)\\)")) {
      const fs::path committed = fs::path(kSource) / fs::path(page_).parent_path() / link;
      if (kDrawnByOtherTests.count(committed.filename()) > 0) {
        EXPECT_TRUE(fs::exists(committed)) << page_ << ": " << link;
        continue;
      }
      std::string drawn;
      for (const auto& file : fs::recursive_directory_iterator(sandbox_.path())) {
        if (file.path().filename() == committed.filename()) drawn = FileContent(file.path());
      }
      EXPECT_FALSE(drawn.empty()) << page_ << ": no command draws " << committed.filename();
      if (Updating()) {
        Save(committed, drawn);
      } else {
        EXPECT_TRUE(SameUpToNoise(FileContent(committed), drawn))
            << committed << " is out of date" << kHint;
      }
    }
  }

  std::string page_;
  Lines lines_;
  Lines out_;
  Sandbox sandbox_;
  std::string file_;     // where the next block goes
  std::string snippet_;  // what the next block is
  std::set<std::string> missing_;
};

class Page : public ::testing::TestWithParam<std::string> {};

TEST_P(Page, ShowsWhatItsCommandsPrint) {
  PageRun run(GetParam());
  run.Go();
  if (!run.missing().empty() && !HasFailure()) {
    GTEST_SKIP() << "all but the blocks that need it: " << MissingDataset(*run.missing().begin());
  }
}

TEST_P(Page, LinksLeadSomewhere) {
  const std::string text = ReadPage(GetParam());
  for (const std::string& link : FindAll(Prose(text), "\\]\\(([^)]+)\\)")) {
    if (link.starts_with("http")) continue;
    const std::size_t hash = std::min(link.find('#'), link.size());
    const fs::path target =
        hash == 0 ? fs::path(kSource) / GetParam()
                  : fs::path(kSource) / fs::path(GetParam()).parent_path() / link.substr(0, hash);
    EXPECT_TRUE(fs::exists(target)) << link;
    if (hash < link.size()) {
      EXPECT_EQ(Anchors(FileContent(target)).count(link.substr(hash + 1)), 1U) << link;
    }
  }
}

TEST_P(Page, CitesWhatIsListed) {
  const std::string bib = FileContent(kSource + "/docs/references.bib");
  for (const std::string& key : FindAll(ReadPage(GetParam()), "@([a-z][a-z0-9]*)[;\\]]")) {
    EXPECT_NE(bib.find("{" + key + ","), std::string::npos) << key << " is not in references.bib";
  }
}

INSTANTIATE_TEST_SUITE_P(Docs, Page, ::testing::ValuesIn(Pages()), [](const auto& page) {
  std::string name = page.param;
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

// ---- All pages together.

TEST(Docs, EveryPageIsReachableFromTheReadme) {
  std::set<std::string> seen = {"README.md"};
  for (Lines open = {"README.md"}; !open.empty();) {
    const std::string page = open.back();
    open.pop_back();
    for (const std::string& link : FindAll(Prose(ReadPage(page)), "\\]\\(([^)#]+\\.md)")) {
      if (link.starts_with("http")) continue;
      const std::string target = (fs::path(page).parent_path() / link).lexically_normal();
      if (seen.insert(target).second) open.push_back(target);
    }
  }
  for (const std::string& page : Pages()) EXPECT_EQ(seen.count(page), 1U) << page;
}

TEST(Docs, TheReadmeIsAFirstPage) { EXPECT_LE(LinesOf(ReadPage("README.md")).size(), 250U); }

// The newest version of the changelog is that of the build, and what pages tell others to ask for.
TEST(Docs, OneVersion) {
  const std::string version =
      FindAll(FileContent(kSource + "/CMakeLists.txt"), "project\\(stepcast VERSION ([0-9.]+)")
          .at(0);
  EXPECT_EQ(FindAll(FileContent(kSource + "/CHANGELOG.md"), "\n## \\[([0-9.]+)\\]").at(0), version);
  const std::string minor = version.substr(0, version.rfind('.'));
  for (const std::string& page : Pages()) {
    for (const std::string& asked : FindAll(ReadPage(page), "find_package\\(stepcast ([0-9.]+)")) {
      EXPECT_EQ(asked, minor) << page;
    }
  }
}

TEST(Docs, EverySourceIsListedOnce) {
  std::set<std::string> keys;
  for (const std::string& key :
       FindAll(FileContent(kSource + "/docs/references.bib"), "(?:^|\n)@[a-z]+\\{([^,]+),")) {
    EXPECT_TRUE(keys.insert(key).second) << key;
  }
  EXPECT_GT(keys.size(), 20U);
}

TEST(Docs, ReferenceNamesEveryCommandAndOption) {
  const std::string page = ReadPage("docs/reference/cli.md");
  Sandbox sandbox;
  for (const std::string& command :
       FindAll(Join(sandbox.Run("stepcast --help").first), "\n  ([a-z]+) +[a-z]")) {
    EXPECT_NE(page.find("\n## " + command + "\n"), std::string::npos) << command;
    for (const std::string& option :
         FindAll(Join(sandbox.Run("stepcast " + command + " --help").first), "\n  --([a-z-]+)")) {
      EXPECT_TRUE(std::regex_search(page, std::regex("`--" + option + "[ `]")))
          << command << " --" << option;
    }
  }
  for (const char* strategy : kStrategyNames) {
    EXPECT_NE(page.find("`" + std::string(strategy) + "`"), std::string::npos) << strategy;
  }
}

TEST(Docs, ReferenceNamesEveryJsonKey) {
  const std::string page = ReadPage("docs/reference/cli.md");
  const std::string batch = " --workload resnet50 --local-batch 128 --json";
  const std::string plan = " --cluster f.yaml" + batch;
  const std::string link =
      " --bandwidth '1 Gbit/s' --rtt '1 ms' --loss 0.001 --congestion-control reno "
      "--loss-burst '1 ms'";
  Sandbox sandbox;
  sandbox.Write("paid.yaml", {"name: paid", "device: t4", "nodes: 8", "devices_per_node: 1",
                              "prices: {node_per_hour: 0.5, server_per_hour: 0.2}",
                              "power: {device: 70 W, device_idle: 20 W, node: 100 W}"});
  for (const std::string& command :
       {std::string("calibrate --cluster ufrgs-tupi --runs data/measurements/ufrgs-tupi-fit.csv "
                    "--output f.yaml --json"),
        std::string("calibrate --cluster f.yaml --check data/measurements/ufrgs-tupi-fit.csv "
                    "data/measurements/ufrgs-tupi-holdout.csv --json"),
        "plan --count 1" + plan,
        "plan --count 1 --cluster ufrgs-tupi" + batch,
        "predict --workers 2 --bucket '1 MiB' --overlap none --backup-workers 1" + link + plan,
        "predict --hosts tupi1+tupi2 --accumulation 2" + plan,
        "predict --workers 4 --strategy auto" + plan,
        "predict --workers 4 --strategy ps-sync --servers 2 --colocated-servers --sharding even "
        "--pipelined-servers "
        "--multicast --in-network-aggregation" +
            plan,
        "predict --workers 4 --strategy ps-async --servers 2 --server-bandwidth '1 Gbit/s' "
        "--staleness-bound 3" +
            plan,
        "predict --workers 4 --cluster paid.yaml --time-limit '1 min' --data-set 1000000 "
        "--noise-scale 4000 --known-batch 256 --least-steps 10000 --node-mtbf '1000 h' "
        "--device-mtbf '2000 h' --checkpoint-time '10 s' --restart-time '1 min'" +
            batch,
        "diagnose --workers 2 --measured '1.37 s'" + plan,
        "explain --workers 2" + link + plan,
        "explain --workers 4 --strategy ps-sync --servers 2" + plan,
        "explain --workers 4 --strategy ps-async --servers 2" + plan,
        std::string("models --json"),
        "sweep --over workers=1,2" + plan,
        "limits --most-workers 2" + plan,
        "limits --most-workers 4 --strategy ps-async --servers 1" + plan,
        "recommend --workers 2" + plan,
        "recommend --workers 2 --objective goodput --noise-scale 4000 --known-batch 256" + plan,
        "recommend --workers 2 --objective price --cluster paid.yaml" + batch,
        "recommend --workers 2 --objective energy --cluster paid.yaml" + batch,
        std::string("evaluate --cluster f.yaml --runs data/measurements/ufrgs-tupi-fit.csv --rows "
                    "--group-by workers --json"),
        std::string("workloads resnet50 --json"),
        std::string("machines --json")}) {
    const auto [lines, code] = sandbox.Run("stepcast " + command);
    EXPECT_EQ(code, 0) << command << "\n" << Join(lines);
    for (const std::string& key : FindAll(Join(lines), "\"([A-Za-z0-9_]+)\":")) {
      EXPECT_NE(page.find("`" + key + "`"), std::string::npos) << command << ": " << key;
    }
  }
}

TEST(PlanTexts, TheMessageHasEveryField) {
  constexpr int kNumberOfWorkers = 1;
  HoldRegion("predictor/serve/stepcast.proto", "//", "plan fields",
             [](const Lines& said) { return PlanMessage(said, kNumberOfWorkers); });
}

TEST(PlanTexts, TheStubHasEveryField) {
  const std::string stub = "predictor/python/stepcast/_core.pyi";
  HoldRegion(stub, "#", "plan keywords", [](const Lines&) { return PlanKeywords(); });
  HoldRegion(stub, "#", "plan properties", [](const Lines&) { return PlanProperties(); });
}

// A number once given to a field stays with it, wherever the list has a new one.
TEST(PlanTexts, NumbersOfMessagesStay) {
  const Lines once = PlanMessage({"  optional int32 local_steps = 40;"}, 1);
  const Lines again = PlanMessage(once, 1);
  EXPECT_EQ(once, again);
  EXPECT_EQ(std::count(once.begin(), once.end(), "  optional int32 local_steps = 40;"), 1);
  std::set<std::string> numbers;
  for (const std::string& line : once) {
    for (const std::string& number : FindAll(line, "= ([0-9]+);")) numbers.insert(number);
  }
  EXPECT_EQ(numbers.size(), PlanFields().size());
  EXPECT_EQ(numbers.count("1"), 0U);
}

TEST(Docs, ReferenceNamesEveryColumnAndKindOfLayer) {
  const std::string page = ReadPage("docs/reference/formats.md");
  stepcast::Run run;
  run.workload = run.device = run.source = "x";
  ForEachField([&](const FieldFacts&, auto field) { Change(&field.Of(run.plan)); });
  run.exposed_sync = Seconds(0.0);
  Lines names = Split(LinesOf(FormatRuns({run})).front(), ',');
  for (const PlanField& field : PlanFields()) {
    EXPECT_EQ(std::count(names.begin(), names.end(), field.column), 1) << field.column;
  }
  names.insert(names.end(), std::begin(kLayerKindNames), std::end(kLayerKindNames));
  for (const std::string& name : names) {
    EXPECT_NE(page.find("`" + name + "`"), std::string::npos) << name;
  }
}

TEST(Docs, OnlyNoiseIsForgiven) {
  EXPECT_TRUE(
      SameUpToNoise("  step  2.81 s  (2.53 s to 3.13 s)", "  step   2.8 s (2.53 s to 3.14 s)"));
  EXPECT_TRUE(SameUpToNoise("bias +0.00548 %", "bias -0.00012 %"));
  EXPECT_TRUE(SameUpToNoise("a  ───  4,336", "a  ────  4,340"));
  EXPECT_FALSE(SameUpToNoise("step 2.81 s", "step 2.95 s"));
  EXPECT_FALSE(SameUpToNoise("step 2.81 s", "step 2.81 ms"));
  EXPECT_FALSE(SameUpToNoise("link binds", "host binds"));
  EXPECT_FALSE(SameUpToNoise("4 workers", "5 workers"));
  EXPECT_FALSE(SameUpToNoise("one line", "one line more"));
}

}  // namespace
}  // namespace stepcast

#include "tests/papers/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>
#include <sstream>
#include <utility>

namespace stepcast::papers {
namespace {

// By how much two printings of one number may differ: as a share, and where it is near zero.
constexpr double kNoise = 0.02;
constexpr double kNoiseNearZero = 0.011;

// The paper's value that the model is held against.
double Judged(const Row& row, const Evaluator& evaluator) {
  return evaluator.standing == Standing::kOtherFigure ? evaluator.other : *row.value;
}

bool Good(const Row& row, const Evaluator& evaluator, const Answer& answer) {
  if (row.is_claim()) return answer.holds;
  const double printed = Judged(row, evaluator);
  const auto near = [&](double value, double wanted) {
    const double tolerance = evaluator.role == Role::kCounted ? kCountedTolerance : kTolerance;
    return std::abs(value / wanted - 1) <= tolerance;
  };
  switch (evaluator.compare) {
    case Compare::kRatio:
      return near(answer.value, printed);
    case Compare::kLoss:
      return near(answer.value, printed) && near(100 - answer.value, 100 - printed);
    case Compare::kAtLeast:
      return answer.value >= printed;
  }
  return false;
}

std::string Number(double value) {
  if (value != 0 && std::abs(value) >= 1e5) return fmt::format("{:.4g}", value);
  if (std::abs(value) >= 1000) return fmt::format("{:.0f}", value);
  return fmt::format("{:.3g}", value);
}

std::string WithUnit(double value, const std::string& unit) {
  return unit == "1" || unit.empty() ? Number(value) : Number(value) + " " + unit;
}

std::string Escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2) {
    text.insert(at, "\\");
  }
  return text;
}

std::string TableRow(const std::vector<std::string>& cells) {
  std::string row = "|";
  for (const std::string& cell : cells) row += " " + Escaped(cell) + " |";
  return row + "\n";
}

// Beside a share of throughput that is lost stands what remains.
std::string ShownWithUnit(const Judgement& j, double value) {
  const bool loss = j.evaluator.compare == Compare::kLoss ||
                    (j.evaluator.compare == Compare::kAtLeast && j.row.unit == "%");
  const std::string shown = WithUnit(value, j.row.unit);
  return loss ? fmt::format("{} lost, {} left", shown, WithUnit(100 - value, j.row.unit)) : shown;
}

std::string PaperSays(const Judgement& j) {
  std::string says = ShownWithUnit(j, *j.row.value);
  if (j.evaluator.compare == Compare::kAtLeast) says = "at least " + says;
  if (j.evaluator.standing == Standing::kOtherFigure) {
    says += "; elsewhere " + ShownWithUnit(j, j.evaluator.other);
  }
  return says;
}

std::string Ratio(const Judgement& j) {
  return fmt::format("{:.2f}", j.answer.value / Judged(j.row, j.evaluator));
}

std::string Verdict(const Judgement& j) {
  switch (j.evaluator.standing) {
    case Standing::kOutOfReach:
      return "out of reach";
    case Standing::kDisputed:
      return "disputed";
    case Standing::kOtherFigure:
      return j.good ? "yes, by the paper's other figure" : "**no**";
    case Standing::kInScope:
      break;
  }
  return j.good ? "yes" : "**no**";
}

constexpr const char* kIntroduction = R"(# The papers, reproduced

Five papers measured data-parallel training over networks. This page holds every number and every finding that their
texts state against stepcast. It is made by a test (`tests/papers`), which fails when an answer changes. The rows are
those of `data/measurements`; their notes are there.

)";
constexpr const char* kHowJudged = R"(
What a paper does not give (compute times, windows, round trips, sizes) is calibrated on some of its rows or taken from
documents. Each row tells what the model's answer is:

- **predicted**: no row that it is judged by went into it;
- **calibrated on**: the row fixed a value, or a choice, that the paper does not give;
- **counted**: arithmetic, as for parameters, transfers and bytes; quotients and sums of rows that were calibrated on; and
  what holds by definition.

How a row is judged:

- A number is reproduced when the model is within 25 % of it, and within 10 % where it is counted; a bound when a step
  keeps it.
- A loss of throughput is judged by what is lost and by what remains: 90 % and 70 % left are within 25 % of each other,
  but a tenth and three tenths lost are three times apart.
- A finding is reproduced when the model's numbers, which stand beside it, show it.
- **By the other figure**: the paper prints two figures for one thing. The row is judged by the one that the remark
  names, which is not the one in the row.
- **Disputed**: arithmetic, a definition or another source contradicts the paper. Such a row counts as missed, except
  under "of the undisputed".
- **Out of reach**: no model here speaks of it.

The reasons stand below the tables, as for every miss, and say who is likelier right. In the summary the strictest
counts come first.

| | reproduced, of the predicted in reach | of all rows | of all in reach | of the undisputed | disputed | out of reach | judged by the paper's other figure |
|---|---|---|---|---|---|---|---|
)";

// Console blocks hold the commands only; what they print is the documentation test's.
const std::string kBlock = "```console\n";
constexpr const char* kByTheProgram = R"(
## By the program

Two of the papers print runs with all their conditions; `data/measurements` has them as files that the program reads. The
ring over T4 needs no calibration: the data sheet answers. Inception-v3 is off because the shipped network takes images of
299 x 299, and Horovod's benchmark feeds it 224 x 224; a calibration finds that out.

```console
$ stepcast evaluate --cluster gce-t4 --runs data/measurements/communication-patterns.csv
$ stepcast calibrate --cluster gce-t4 --runs data/measurements/communication-patterns.csv \
    --output t4.yaml
$ stepcast evaluate --cluster t4.yaml --runs data/measurements/communication-patterns.csv
```

The device of the other paper is not stated, so that its compute has to be fitted. Runs of one worker fit together, but
for MobileNet's fall at half the bandwidth. All of them have the same latency, so the fit cannot tell round trips from
fixed time: what the tables above take from the paper's Figure 2 (a window of 64 KiB) is not in the file.

```console
$ grep -v -e ',1-1-1,' -e mobilenet-32-half data/measurements/networking-perspective.csv > one.csv
$ stepcast calibrate --cluster networking-perspective --runs one.csv --output np.yaml
$ stepcast evaluate --cluster np.yaml --runs one.csv
```

The runs of three workers are no runs of the shipped networks: they would take fifteen times the bytes of ResNet-50.

```console
$ stepcast evaluate --cluster np.yaml --runs data/measurements/networking-perspective.csv \
    --group-by nodes | tail -6
```
)";

std::string Percent(int part, int whole) { return fmt::format("{:.0f} %", 100.0 * part / whole); }

void AppendTally(const std::string& name, const std::vector<Judgement>& judgements, bool claims,
                 const std::string& paper, std::string* page) {
  const Tally t = Count(judgements, claims, paper);
  if (t.all == 0) return;
  const auto share = [](int good, int of) {
    return of == 0 ? "-" : fmt::format("{} of {}, {}", good, of, Percent(good, of));
  };
  *page += TableRow({name, share(t.predicted_good, t.predicted), share(t.good, t.all),
                     share(t.good, t.in_reach), share(t.undisputed_good, t.undisputed),
                     fmt::format("{}", t.disputed), fmt::format("{}", t.all - t.in_reach),
                     fmt::format("{}", t.other_figure)});
}

void AppendSetup(const PaperModel& model, std::string* page) {
  std::set<std::string> seen;
  std::string table;
  for (const auto& [name, setup] : model.setups) {
    // The last value of a parameter counts; one that an earlier set-up has too is told there.
    std::map<std::string, std::size_t> last;
    const auto& lines = setup->lines();
    for (std::size_t i = 0; i < lines.size(); ++i) last[lines[i].what] = i;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Setup::Line& line = lines[i];
      if (last[line.what] != i || line.from == kAsGoodAsNone) continue;
      const std::string value = WithUnit(line.value, line.unit);
      if (!seen.insert(line.what + value).second) continue;
      table += TableRow({line.what + (name.empty() ? "" : ", " + name), value,
                         (line.calibrated ? "calibrated on " : "") + line.from});
    }
  }
  if (table.empty()) return;
  *page += "| parameter | value | from |\n|---|---|---|\n" + table + "\n";
}

}  // namespace

std::string ClusterFile(const std::string& paper) {
  return "data/measurements/papers/" + paper + ".yaml";
}

std::vector<Judgement> Judge(const std::vector<Row>& rows, const std::vector<PaperModel>& models) {
  std::map<std::string, const Evaluator*> by_id;
  for (const PaperModel& model : models) {
    for (const Evaluator& evaluator : model.evaluators) by_id[evaluator.id] = &evaluator;
  }
  std::vector<Judgement> judgements;
  for (const Row& row : rows) {
    const auto found = by_id.find(row.id);
    if (found == by_id.end()) continue;
    Judgement j{row, *found->second, {}, false};
    if (j.evaluator.evaluate) {
      j.answer = j.evaluator.evaluate();
      j.good = Good(row, j.evaluator, j.answer);
    }
    judgements.push_back(std::move(j));
  }
  return judgements;
}

Tally Count(const std::vector<Judgement>& judgements, bool claims, const std::string& paper) {
  Tally tally;
  for (const Judgement& j : judgements) {
    if (j.row.is_claim() != claims) continue;
    if (!paper.empty() && j.row.paper != paper) continue;
    ++tally.all;
    tally.in_reach += j.in_reach();
    tally.disputed += j.evaluator.standing == Standing::kDisputed;
    tally.other_figure += j.evaluator.standing == Standing::kOtherFigure;
    tally.undisputed += j.undisputed();
    tally.undisputed_good += j.undisputed() && j.good;
    tally.good += j.reproduced();
    if (!j.in_reach() || j.evaluator.role != Role::kPredicted) continue;
    ++tally.predicted;
    tally.predicted_good += j.reproduced();
  }
  return tally;
}

std::string RenderPage(const std::vector<Judgement>& judgements,
                       const std::vector<PaperModel>& models) {
  std::string page = kIntroduction;
  for (const Paper& paper : Papers()) {
    page += fmt::format("- [{}](#{}): {}\n", paper.name, paper.name, paper.title);
  }
  page += kHowJudged;
  AppendTally("all numbers", judgements, false, "", &page);
  for (const Paper& paper : Papers()) {
    AppendTally(paper.name + ", numbers", judgements, false, paper.name, &page);
  }
  AppendTally("all findings", judgements, true, "", &page);
  for (const Paper& paper : Papers()) {
    AppendTally(paper.name + ", findings", judgements, true, paper.name, &page);
  }

  for (const Paper& paper : Papers()) {
    page += fmt::format("\n## {}\n\n{}. *{}.*\n\n", paper.name, paper.authors, paper.title);
    for (const PaperModel& model : models) {
      if (model.paper != paper.name) continue;
      for (const std::string& paragraph : model.prose) page += paragraph + "\n\n";
      AppendSetup(model, &page);
    }
    std::string numbers;
    std::string claims;
    std::string remarks;
    std::map<std::string, std::string> remarked;
    std::vector<std::string> remark_order;
    for (const Judgement& j : judgements) {
      if (j.row.paper != paper.name) continue;
      const std::string role = kRoleNames[static_cast<int>(j.evaluator.role)];
      const std::string where = j.row.place;
      if (j.row.is_claim()) {
        claims += TableRow({"`" + j.row.id + "`", where, j.row.text,
                            j.in_reach() ? j.answer.says : "", Verdict(j)});
      } else {
        numbers += TableRow({"`" + j.row.id + "`", where, j.row.text, PaperSays(j),
                             j.in_reach() ? ShownWithUnit(j, j.answer.value) : "",
                             j.in_reach() ? Ratio(j) : "", j.in_reach() ? role : "", Verdict(j)});
      }
      if (j.evaluator.remark.empty()) continue;
      // Rows that share a remark stand together, where the first of them is.
      std::string& ids = remarked[j.evaluator.remark];
      if (ids.empty()) remark_order.push_back(j.evaluator.remark);
      ids += (ids.empty() ? "`" : ", `") + j.row.id + "`";
    }
    for (const std::string& remark : remark_order) {
      remarks += fmt::format("- {}: {}.\n", remarked[remark], remark);
    }
    if (!numbers.empty()) {
      page +=
          "| row | place | what | paper | model | model / paper | answer | within 25 % |\n"
          "|---|---|---|---|---|---|---|---|\n" +
          numbers + "\n";
    }
    if (!claims.empty()) {
      page += "| row | place | finding | the model says | reproduced |\n|---|---|---|---|---|\n" +
              claims + "\n";
    }
    if (!remarks.empty()) page += "Remarks:\n\n" + remarks;
    for (const PaperModel& model : models) {
      if (model.paper != paper.name || model.commands.empty()) continue;
      page += fmt::format("\nBy the program, with what was calibrated ([{}](../../{})),\n{}",
                          paper.name, ClusterFile(paper.name), model.commands);
    }
  }
  return page + kByTheProgram;
}

std::string WithOutputsOf(const std::string& old, const std::string& page) {
  const auto blocks = [](const std::string& text) {
    std::vector<std::pair<std::size_t, std::string>> found;
    for (std::size_t at = 0; (at = text.find(kBlock, at)) != std::string::npos;) {
      const std::size_t first = at + kBlock.size();
      const std::size_t end = std::min(text.find("\n```", first), text.size());
      found.emplace_back(first, text.substr(first, end - first));
      at = end;
    }
    return found;
  };
  const auto commands = [](const std::string& block) {
    std::string lines;
    std::istringstream in(block);
    bool continued = false;
    for (std::string line; std::getline(in, line);) {
      if (continued || line.rfind("$ ", 0) == 0) {
        lines += line + "\n";
        continued = line.ends_with("\\");
      }
    }
    return lines;
  };
  std::map<std::string, std::string> known;
  for (const auto& [at, block] : blocks(old)) known[commands(block)] = block;
  std::string filled = page;
  const auto fresh = blocks(page);
  for (auto block = fresh.rbegin(); block != fresh.rend(); ++block) {
    const auto found = known.find(commands(block->second));
    if (found == known.end()) continue;
    filled.replace(block->first, block->second.size(), found->second);
  }
  return filled;
}

bool SameButForNoise(const std::string& said, const std::string& actual) {
  std::size_t i = 0;
  std::size_t j = 0;
  const auto digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
  const auto number = [](const std::string& text, std::size_t* at) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str() + *at, &end);
    *at = static_cast<std::size_t>(end - text.c_str());
    return value;
  };
  while (i < said.size() && j < actual.size()) {
    if (digit(said[i]) && digit(actual[j])) {
      const double x = number(said, &i);
      const double y = number(actual, &j);
      if (std::abs(x - y) > std::max(kNoise * std::max(x, y), kNoiseNearZero)) return false;
    } else if (said[i] == actual[j]) {
      ++i;
      ++j;
    } else {
      return false;
    }
  }
  return i == said.size() && j == actual.size();
}

}  // namespace stepcast::papers

#include "data/io/yaml_section.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "data/io/text_file.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"
#include "data/values/suggest.h"

namespace stepcast {
namespace {

constexpr std::size_t kFew = 16;  // keys that are found as quickly one after another

// Listens to the parser for the line on which a document begins.
class DocumentStart : public YAML::EventHandler {
 public:
  int line() const { return line_; }

  void OnDocumentStart(const YAML::Mark& mark) override { line_ = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}

 private:
  int line_ = 0;
};

// The line on which something follows the first document; 0 when nothing does. YAML::Load would not
// look at it, and YAML::LoadAll does not end on every text.
int LineOfSecondDocument(const std::string& text) {
  std::istringstream stream(text);
  YAML::Parser parser(stream);
  DocumentStart start;
  if (!parser.HandleNextDocument(start)) return 0;
  return parser.HandleNextDocument(start) ? start.line() : 0;
}

// Whether something may follow the document: behind a mapping in lines there can only be a mark.
bool MayHaveMore(const std::string& text, const YAML::Node& document) {
  return !document.IsMap() || document.Style() == YAML::EmitterStyle::Flow ||
         text.find("\n---") != std::string::npos || text.find("\n...") != std::string::npos;
}

}  // namespace

YamlSection YamlSection::Read(const std::string& path) {
  return Parse(ReadTextFile(path, kMostYamlBytes), path);
}

YamlSection YamlSection::Parse(const std::string& text, const std::string& path) {
  // The end-of-document mark lets the parser notice a quote that is open at the end of the file.
  const std::string marked = text + (text.empty() || text.back() == '\n' ? "...\n" : "\n...\n");
  YAML::Node node;
  int second_line = 0;
  try {
    node = YAML::Load(marked);
    if (MayHaveMore(text, node)) second_line = LineOfSecondDocument(marked);
  } catch (const YAML::Exception& e) {
    const int last_line = static_cast<int>(std::count(marked.begin(), marked.end(), '\n')) - 1;
    const InputPlace place{path, e.mark.is_null() ? 0 : std::min(e.mark.line + 1, last_line), ""};
    if (dynamic_cast<const YAML::DeepRecursion*>(&e) != nullptr) {
      throw InputError(place, "", "is nested too deeply");
    }
    if (e.msg == YAML::ErrorMsg::DOC_IN_SCALAR) {
      throw InputError(place, "", "is within a quote that is never closed");
    }
    throw InputError(place, "", "is not valid YAML or JSON: " + e.msg);
  }
  if (second_line > 0) {
    throw InputError({path, second_line, ""}, "", "begins a second document",
                     "one document in a file");
  }
  if (node.IsNull()) {
    throw InputError({path, 0, ""}, "", "is empty", "a mapping of keys to values");
  }
  return {path, "", node};
}

YamlSection::YamlSection(std::string file, std::string prefix, const YAML::Node& node)
    : file_(std::move(file)), prefix_(std::move(prefix)), line_(node.Mark().line + 1) {
  if (!node.IsMap()) {
    const std::string key = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1);
    throw InputError({file_, line_, key}, node.IsScalar() ? node.Scalar() : "", "is not a mapping",
                     "keys with values");
  }
  const bool many = node.size() > kFew;
  if (many) index_.reserve(node.size());
  entries_.reserve(node.size());
  for (const auto& pair : node) {
    const int line = pair.first.Mark().line + 1;
    if (!pair.first.IsScalar()) {
      throw InputError({file_, line, prefix_}, "", "has a key that is not a word");
    }
    const std::string& key = pair.first.Scalar();
    if (const Entry* earlier = Find(key)) {
      throw InputError({file_, line, prefix_ + key}, "",
                       "is given twice, first on line " + std::to_string(earlier->line),
                       "each key once");
    }
    if (many) index_.emplace(key, entries_.size());
    entries_.push_back({key, line, pair.second});
  }
}

const YamlSection::Entry* YamlSection::Find(const std::string& key) const {
  if (!index_.empty()) {
    const auto found = index_.find(key);
    return found == index_.end() ? nullptr : &entries_[found->second];
  }
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.key == key; });
  return found == entries_.end() ? nullptr : &*found;
}

bool YamlSection::Has(const std::string& key) { return Know(key) != nullptr; }

bool YamlSection::IsSection(const std::string& key) const {
  const Entry* entry = Find(key);
  return entry != nullptr && entry->value.IsMap();
}

InputPlace YamlSection::PlaceOf(const std::string& key) const {
  const Entry* entry = Find(key);
  return {file_, entry != nullptr ? entry->line : line_, prefix_ + key};
}

YamlSection::Entry* YamlSection::Know(const std::string& key) {
  auto* entry = const_cast<Entry*>(Find(key));  // NOLINT(cppcoreguidelines-pro-type-const-cast)
  const bool is_new = entry != nullptr
                          ? !entry->known
                          : std::find(known_.begin(), known_.end(), key) == known_.end();
  if (is_new) known_.push_back(key);
  if (entry != nullptr) entry->known = true;
  return entry;
}

const YAML::Node& YamlSection::Ask(Entry* entry) const {
  entry->asked = true;
  if (entry->value.IsNull()) {
    throw InputError({file_, entry->line, prefix_ + entry->key}, "", "is empty",
                     "a value, or no such key");
  }
  return entry->value;
}

std::optional<YAML::Node> YamlSection::Take(const std::string& key) {
  Entry* entry = Know(key);
  if (entry == nullptr) return std::nullopt;
  return Ask(entry);
}

std::string YamlSection::ScalarOf(const YAML::Node& node, const std::string& key) const {
  if (!node.IsScalar()) {
    throw InputError({file_, node.Mark().line + 1, prefix_ + key}, "",
                     node.IsMap()    ? "is a mapping"
                     : node.IsNull() ? "is empty"
                                     : "is a list",
                     "a single value");
  }
  return node.Scalar();
}

std::optional<std::string> YamlSection::OptionalText(const std::string& key) {
  const std::optional<YAML::Node> node = Take(key);
  if (!node) return std::nullopt;
  return ScalarOf(*node, key);
}

std::string YamlSection::Text(const std::string& key) {
  std::optional<std::string> text = OptionalText(key);
  if (!text || Trim(*text).empty()) {
    std::vector<std::string> present;
    for (const Entry& entry : entries_) present.push_back(entry.key);
    const bool given = Has(key);
    throw InputError(PlaceOf(key), "", given ? "is empty" : "is a required key that is missing",
                     given ? "a value" : "a mapping with it; this one has " + JoinNames(present));
  }
  return *text;
}

std::string YamlSection::Name(const std::string& key) {
  return CheckedName(Text(key), PlaceOf(key));
}

int YamlSection::Integer(const std::string& key, int low, int high) {
  return ParseInteger(Text(key), PlaceOf(key), low, high);
}

long long YamlSection::LongInteger(const std::string& key, long long low, long long high) {
  return ParseLongInteger(Text(key), PlaceOf(key), low, high);
}

double YamlSection::Number(const std::string& key, double low, double high) {
  return ParseNumber(Text(key), PlaceOf(key), low, high);
}

std::optional<YamlSection> YamlSection::OptionalSection(const std::string& key) {
  const std::optional<YAML::Node> node = Take(key);
  if (!node) return std::nullopt;
  return YamlSection(file_, prefix_ + key + ".", *node);
}

std::vector<YamlSection> YamlSection::Sections(const std::string& key) {
  std::vector<YamlSection> sections;
  const std::optional<YAML::Node> node = Take(key);
  if (!node) return sections;
  if (!node->IsSequence()) {
    throw InputError(PlaceOf(key), "", "is not a list", "a list of mappings");
  }
  for (std::size_t i = 0; i < node->size(); ++i) {
    sections.push_back(
        YamlSection(file_, prefix_ + key + "[" + std::to_string(i) + "].", (*node)[i]));
  }
  return sections;
}

std::vector<std::string> YamlSection::Texts(const std::string& key) {
  std::vector<std::string> texts;
  const std::optional<YAML::Node> node = Take(key);
  if (!node) return texts;
  if (!node->IsSequence()) throw InputError(PlaceOf(key), "", "is not a list", "a list of values");
  for (const YAML::Node& item : *node) texts.push_back(ScalarOf(item, key));
  return texts;
}

std::vector<std::pair<std::string, YamlSection>> YamlSection::NamedSections() {
  std::vector<std::pair<std::string, YamlSection>> sections;
  sections.reserve(entries_.size());
  for (Entry& entry : entries_) {
    sections.emplace_back(entry.key, YamlSection(file_, prefix_ + entry.key + ".", Ask(&entry)));
  }
  return sections;
}

std::map<std::string, std::string> YamlSection::NamedTexts() {
  std::map<std::string, std::string> texts;
  for (Entry& entry : entries_) {
    std::string text = ScalarOf(Ask(&entry), entry.key);
    if (Trim(text).empty()) {
      throw InputError({file_, entry.line, prefix_ + entry.key}, "", "is empty", "a value");
    }
    texts[entry.key] = std::move(text);
  }
  return texts;
}

void YamlSection::Finish() const {
  for (const Entry& entry : entries_) {
    if (entry.asked) continue;
    throw InputError({file_, entry.line, prefix_ + entry.key}, "",
                     "is an unknown key" + DidYouMean(entry.key, known_), JoinNames(known_));
  }
}

}  // namespace stepcast

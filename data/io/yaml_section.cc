#include "data/io/yaml_section.h"

#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <sstream>
#include <unordered_map>

#include "data/io/text_file.h"
#include "data/record/controls.h"
#include "data/values/names.h"
#include "data/values/numbers.h"
#include "data/values/size_limits.h"
#include "data/values/suggest.h"

namespace stepcast {
namespace {

constexpr std::size_t kFew = 16;  // keys that are found as quickly one after another

// Builds the first document, and notes the line on which a second begins. The parser's own tree
// takes longer than its text.
class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& file, std::size_t most_repeated) : most_repeated_(most_repeated) {
    document_->file = file;
  }

  std::shared_ptr<const YamlDocument> document() const { return document_; }
  int second_line() const { return second_line_; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (started_) second_line_ = mark.line + 1;
    started_ = true;
  }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Add(YamlNode::Kind::kNull, mark, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (second_line_ > 0) return;
    const InputPlace place{document_->file, mark.line + 1, ""};
    const Anchored& anchored = anchors_.at(anchor);
    if (anchored.weight == 0) throw InputError(place, "", "is an alias within its own anchor");
    // Readers copy what they are given as often as it is told.
    if (anchored.weight > most_repeated_ - repeated_) {
      throw InputError(place, "", "repeats too much by aliases",
                       "at most " + std::to_string(most_repeated_ >> 20) + " MiB in all");
    }
    repeated_ += anchored.weight;
    taken_ += anchored.weight;
    Put(anchored.node);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode* node = Add(YamlNode::Kind::kScalar, mark, anchor);
    if (node == nullptr) return;
    node->scalar = value;
    taken_ += value.size();
    if (anchor != 0) anchors_.at(anchor).weight += value.size();
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    Open(Add(YamlNode::Kind::kSequence, mark, anchor), anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    Open(Add(YamlNode::Kind::kMap, mark, anchor), anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  // nullptr behind the first document, of which alone there is a tree.
  YamlNode* Add(YamlNode::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (second_line_ > 0) return nullptr;
    YamlNode* node = &document_->nodes.emplace_back(YamlNode{kind, mark.line + 1, {}, {}});
    ++taken_;
    const bool whole = kind == YamlNode::Kind::kNull || kind == YamlNode::Kind::kScalar;
    if (anchor != 0) anchors_[anchor] = {node, std::size_t{whole}};
    Put(node);
    return node;
  }
  void Put(const YamlNode* node) {
    if (!open_.empty()) open_.back().node->children.push_back(node);
  }
  void Open(YamlNode* node, YAML::anchor_t anchor) {
    if (node != nullptr) open_.push_back({node, anchor, taken_ - 1});
  }
  void Close() {
    if (second_line_ > 0) return;
    const Opened& closed = open_.back();
    if (closed.anchor != 0) anchors_.at(closed.anchor).weight = taken_ - closed.before;
    open_.pop_back();
  }

  struct Anchored {
    const YamlNode* node;
    std::size_t weight;  // nodes and bytes of their values, with what aliases repeat; 0 while open
  };
  struct Opened {
    YamlNode* node;
    YAML::anchor_t anchor;
    std::size_t before;  // taken_
  };

  std::shared_ptr<YamlDocument> document_ = std::make_shared<YamlDocument>();
  std::unordered_map<YAML::anchor_t, Anchored> anchors_;
  std::vector<Opened> open_;
  std::size_t taken_ = 0;     // the weight of what there is so far
  std::size_t repeated_ = 0;  // of which by aliases
  std::size_t most_repeated_;
  bool started_ = false;
  int second_line_ = 0;
};

}  // namespace

YamlSection YamlSection::Read(const std::string& path) {
  return ParseChecked(ReadTextFile(path, kMostYamlBytes), path, kMostRepeated);
}

YamlSection YamlSection::Parse(const std::string& text, const std::string& path) {
  CheckText(text, path);
  return ParseChecked(text, path, kMostRepeated);
}

YamlSection YamlSection::ParsePart(const std::string& text, const std::string& path) {
  CheckText(text, path);
  return ParseChecked(text, path, 0);
}

YamlSection YamlSection::ParseChecked(const std::string& text, const std::string& path,
                                      std::size_t most_repeated) {
  // The end-of-document mark lets the parser notice a quote that is open at the end of the file.
  const std::string marked = text + (text.empty() || text.back() == '\n' ? "...\n" : "\n...\n");
  TreeBuilder tree(path, most_repeated);
  try {
    std::istringstream stream(marked);
    YAML::Parser parser(stream);
    // What follows the document would not be looked at otherwise.
    if (parser.HandleNextDocument(tree)) parser.HandleNextDocument(tree);
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
  if (tree.second_line() > 0) {
    throw InputError({path, tree.second_line(), ""}, "", "begins a second document",
                     "one document in a file");
  }
  const std::shared_ptr<const YamlDocument> document = tree.document();
  if (document->nodes.empty() || document->nodes.front().kind == YamlNode::Kind::kNull) {
    throw InputError({path, 0, ""}, "", "is empty", "a mapping of keys to values");
  }
  return {document, "", document->nodes.front()};
}

YamlSection::YamlSection(std::shared_ptr<const YamlDocument> document, std::string prefix,
                         const YamlNode& node)
    : document_(std::move(document)), prefix_(std::move(prefix)), line_(node.line) {
  if (node.kind != YamlNode::Kind::kMap) {
    const std::string key = prefix_.empty() ? "" : prefix_.substr(0, prefix_.size() - 1);
    throw InputError({file(), line_, key}, node.scalar, "is not a mapping", "keys with values");
  }
  const std::size_t size = node.children.size() / 2;
  const bool many = size > kFew;
  if (many) index_.reserve(size);
  entries_.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    const YamlNode& named = *node.children[2 * i];
    if (named.kind != YamlNode::Kind::kScalar) {
      throw InputError({file(), named.line, prefix_}, "", "has a key that is not a word");
    }
    const std::string& key = named.scalar;
    if (const Entry* earlier = Find(key)) {
      throw InputError({file(), named.line, prefix_ + key}, "",
                       "is given twice, first on line " + std::to_string(earlier->line),
                       "each key once");
    }
    if (many) index_.emplace(key, entries_.size());
    entries_.push_back({key, named.line, node.children[2 * i + 1]});
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
  return entry != nullptr && entry->value->kind == YamlNode::Kind::kMap;
}

InputPlace YamlSection::PlaceOf(const std::string& key) const {
  const Entry* entry = Find(key);
  return {file(), entry != nullptr ? entry->line : line_, prefix_ + key};
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

const YamlNode& YamlSection::Ask(Entry* entry) const {
  entry->asked = true;
  if (entry->value->kind == YamlNode::Kind::kNull) {
    throw InputError({file(), entry->line, prefix_ + entry->key}, "", "is empty",
                     "a value, or no such key");
  }
  return *entry->value;
}

const YamlNode* YamlSection::Take(const std::string& key) {
  Entry* entry = Know(key);
  return entry == nullptr ? nullptr : &Ask(entry);
}

const std::string& YamlSection::ScalarOf(const YamlNode& node, const std::string& key) const {
  if (node.kind == YamlNode::Kind::kScalar) return node.scalar;
  throw InputError({file(), node.line, prefix_ + key}, "",
                   node.kind == YamlNode::Kind::kMap    ? "is a mapping"
                   : node.kind == YamlNode::Kind::kNull ? "is empty"
                                                        : "is a list",
                   "a single value");
}

const std::vector<const YamlNode*>& YamlSection::ItemsOf(const YamlNode& node,
                                                         const std::string& key,
                                                         const char* allowed) const {
  if (node.kind == YamlNode::Kind::kSequence) return node.children;
  throw InputError(PlaceOf(key), "", "is not a list", allowed);
}

std::optional<std::string> YamlSection::OptionalText(const std::string& key) {
  const YamlNode* node = Take(key);
  if (node == nullptr) return std::nullopt;
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

std::optional<std::string> YamlSection::OptionalLine(const std::string& key) {
  std::optional<std::string> text = OptionalText(key);
  if (!text) return text;
  text->erase(text->find_last_not_of("\r\n") + 1);
  RefuseControls(*text, PlaceOf(key));
  return text;
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

std::optional<int> YamlSection::OptionalChoice(const std::string& key,
                                               std::span<const char* const> names,
                                               const char* problem) {
  const std::optional<std::string> text = OptionalText(key);
  if (!text) return std::nullopt;
  if (const std::optional<int> found = FindAlike(*text, names)) return found;
  throw InputError(PlaceOf(key), *text, problem, JoinNames(names));
}

int YamlSection::Choice(const std::string& key, std::span<const char* const> names,
                        const char* problem) {
  Text(key);  // which has to be there
  return *OptionalChoice(key, names, problem);
}

std::optional<YamlSection> YamlSection::OptionalSection(const std::string& key) {
  const YamlNode* node = Take(key);
  if (node == nullptr) return std::nullopt;
  return YamlSection(document_, prefix_ + key + ".", *node);
}

std::vector<YamlSection> YamlSection::Sections(const std::string& key) {
  std::vector<YamlSection> sections;
  const YamlNode* node = Take(key);
  if (node == nullptr) return sections;
  const std::vector<const YamlNode*>& items = ItemsOf(*node, key, "a list of mappings");
  sections.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    sections.push_back(
        YamlSection(document_, prefix_ + key + "[" + std::to_string(i) + "].", *items[i]));
  }
  return sections;
}

std::vector<std::string> YamlSection::Texts(const std::string& key) {
  std::vector<std::string> texts;
  const YamlNode* node = Take(key);
  if (node == nullptr) return texts;
  for (const YamlNode* item : ItemsOf(*node, key, "a list of values")) {
    texts.push_back(ScalarOf(*item, key));
  }
  return texts;
}

std::vector<std::pair<std::string, YamlSection>> YamlSection::NamedSections() {
  std::vector<std::pair<std::string, YamlSection>> sections;
  sections.reserve(entries_.size());
  for (Entry& entry : entries_) {
    sections.emplace_back(entry.key,
                          YamlSection(document_, prefix_ + entry.key + ".", Ask(&entry)));
  }
  return sections;
}

std::map<std::string, std::string> YamlSection::NamedTexts() {
  std::map<std::string, std::string> texts;
  for (Entry& entry : entries_) {
    std::string text = ScalarOf(Ask(&entry), entry.key);
    if (Trim(text).empty()) {
      throw InputError({file(), entry.line, prefix_ + entry.key}, "", "is empty", "a value");
    }
    texts[entry.key] = std::move(text);
  }
  return texts;
}

std::map<std::string, std::string> YamlSection::NamedTexts(const std::string& key) {
  if (std::optional<YamlSection> section = OptionalSection(key)) return section->NamedTexts();
  return {};
}

void YamlSection::Finish() const {
  for (const Entry& entry : entries_) {
    if (entry.asked) continue;
    throw InputError({file(), entry.line, prefix_ + entry.key}, "",
                     "is an unknown key" + DidYouMean(entry.key, known_), JoinNames(known_));
  }
}

}  // namespace stepcast

// A mapping of a YAML (or JSON) file, read strictly: every key is asked for once, and a key that
// nobody asked for, one given twice, or a value of another kind is an InputError with its line.
// For the readers of this folder.
#ifndef STEPCAST_DATA_IO_YAML_SECTION_H_
#define STEPCAST_DATA_IO_YAML_SECTION_H_

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "data/record/input_error.h"

namespace stepcast {

// What a document holds, in the order of the text: each node before what it holds.
struct YamlNode {
  enum class Kind { kNull, kScalar, kSequence, kMap };
  Kind kind = Kind::kNull;
  int line = 0;
  std::string scalar;
  std::vector<const YamlNode*> children;  // of a map its keys and values in turn
};
struct YamlDocument {
  std::string file;
  std::deque<YamlNode> nodes;
};

class [[gnu::visibility("hidden")]] YamlSection {
 public:
  // The mapping at the top of a file, or of a text that is that of a file named `path`.
  static YamlSection Read(const std::string& path);
  static YamlSection Parse(const std::string& text, const std::string& path);
  // The same of a text within another, which aliases may not make longer.
  static YamlSection ParsePart(const std::string& text, const std::string& path);

  bool Has(const std::string& key);

  // Values. The plain forms throw when the key is missing, naming the keys that are there.
  std::string Text(const std::string& key);
  std::optional<std::string> OptionalText(const std::string& key);
  std::string Name(const std::string& key);
  // A text that is shown on one line: without line ends behind it, and control characters in it.
  std::optional<std::string> OptionalLine(const std::string& key);
  int Integer(const std::string& key, int low, int high);
  long long LongInteger(const std::string& key, long long low, long long high);
  double Number(const std::string& key, double low, double high);
  // The position of the value among `names`.
  int Choice(const std::string& key, std::span<const char* const> names, const char* problem);

  // The same, empty when the key is absent.
  std::optional<int> OptionalInteger(const std::string& key, int low, int high) {
    return Has(key) ? std::optional(Integer(key, low, high)) : std::nullopt;
  }
  std::optional<double> OptionalNumber(const std::string& key, double low, double high) {
    return Has(key) ? std::optional(Number(key, low, high)) : std::nullopt;
  }
  std::optional<int> OptionalChoice(const std::string& key, std::span<const char* const> names,
                                    const char* problem);

  // The value under `key` read by one of the parsers of data/values; empty when it is absent.
  template <class Parser>
  auto Optional(const std::string& key, Parser parser)
      ->std::optional<decltype(parser(std::string_view(), InputPlace()))> {
    const std::optional<std::string> text = OptionalText(key);
    if (!text) return std::nullopt;
    return parser(*text, PlaceOf(key));
  }

  // Sections and sequences; empty when the key is absent.
  std::optional<YamlSection> OptionalSection(const std::string& key);
  std::vector<YamlSection> Sections(const std::string& key);
  // The mappings of this one by their keys, each of which is asked for by it.
  std::vector<std::pair<std::string, YamlSection>> NamedSections();
  std::vector<std::string> Texts(const std::string& key);
  std::map<std::string, std::string> NamedTexts();
  std::map<std::string, std::string> NamedTexts(const std::string& key);
  // Whether the value under `key` is itself a mapping.
  bool IsSection(const std::string& key) const;

  // To be called last: throws for the first key that was never asked for.
  void Finish() const;

  InputPlace PlaceOf(const std::string& key) const;
  const std::string& file() const { return document_->file; }

 private:
  // Aliases may repeat so many parts and bytes of their values.
  static YamlSection ParseChecked(const std::string& text, const std::string& path,
                                  std::size_t most_repeated);
  YamlSection(std::shared_ptr<const YamlDocument> document, std::string prefix,
              const YamlNode& node);

  struct Entry {
    std::string key;
    int line = 0;
    const YamlNode* value = nullptr;
    bool known = false;  // it was asked after
    bool asked = false;  // it was asked for
  };

  // The entry of `key`, nullptr where there is none; Know notes that somebody asked after it.
  const Entry* Find(const std::string& key) const;
  Entry* Know(const std::string& key);
  // Asks for an entry that is there.
  const YamlNode& Ask(Entry * entry) const;
  // nullptr where there is none.
  const YamlNode* Take(const std::string& key);
  const std::string& ScalarOf(const YamlNode& node, const std::string& key) const;
  const std::vector<const YamlNode*>& ItemsOf(const YamlNode& node, const std::string& key,
                                              const char* allowed) const;

  std::shared_ptr<const YamlDocument> document_;
  std::string prefix_;  // "link." inside the section link
  int line_ = 0;
  std::vector<Entry> entries_;
  std::unordered_map<std::string, std::size_t> index_;  // of entries_, where they are many
  std::vector<std::string> known_;  // keys asked after, present or not, in that order
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_YAML_SECTION_H_

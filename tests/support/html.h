// A page of ours, read back: as strict as we write it, and with the texts that a reader sees.
#ifndef STEPCAST_TESTS_SUPPORT_HTML_H_
#define STEPCAST_TESTS_SUPPORT_HTML_H_

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace stepcast {

struct HtmlElement {
  std::string name;
  std::map<std::string, std::string> attributes;
  std::string text;  // unescaped, of all that is in it
  int parent = -1;   // its place among the elements

  std::string Get(const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
};

// All elements in the order of their tags. Throws std::runtime_error at what such a page may not
// have: other elements or attributes, a tag that is not closed, an unescaped bracket or quote.
class HtmlReader {
 public:
  explicit HtmlReader(const std::string& page) : page_(page) {
    Expect("<!doctype html>\n");
    Element(-1);
    Check(page_.substr(at_) == "\n", "something behind the page");
  }

  const std::vector<HtmlElement>& elements() const { return elements_; }

 private:
  static const std::set<std::string>& Names() {
    static const std::set<std::string> names = {
        "html", "head",    "meta",   "title", "link",    "style",   "body",       "header",
        "h1",   "h2",      "h3",     "p",     "nav",     "ul",      "li",         "a",
        "main", "section", "div",    "table", "caption", "thead",   "tbody",      "tr",
        "th",   "td",      "figure", "pre",   "strong",  "svg",     "desc",       "rect",
        "line", "text",    "g",      "path",  "circle",  "polygon", "figcaption", "span"};
    return names;
  }

  void Check(bool good, const char* what) const {
    if (!good) Fail(what);
  }
  [[noreturn]] void Fail(const std::string& what) const {
    throw std::runtime_error(what + " at " + page_.substr(std::min(at_, page_.size()), 60));
  }

  void Expect(const std::string& token) {
    if (page_.compare(at_, token.size(), token) != 0) Fail("no " + token);
    at_ += token.size();
  }

  std::string Word() {
    const std::size_t start = at_;
    while (at_ < page_.size() &&
           (std::isalnum(static_cast<unsigned char>(page_[at_])) || page_[at_] == '-')) {
      ++at_;
    }
    Check(at_ > start, "no name");
    return page_.substr(start, at_ - start);
  }

  std::string Characters(char end) {
    static const std::map<std::string, std::string> kEntities = {
        {"&amp;", "&"}, {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}};
    std::string text;
    while (true) {
      Check(at_ < page_.size(), "unfinished text");
      const char c = page_[at_];
      if (c == end) return text;
      Check(c != '<' && c != '>', "an unescaped bracket");
      if (c != '&') {
        text += c;
        ++at_;
        continue;
      }
      const std::size_t semicolon = page_.find(';', at_);
      Check(semicolon != std::string::npos, "an entity");
      const auto known = kEntities.find(page_.substr(at_, semicolon - at_ + 1));
      Check(known != kEntities.end(), "an unknown entity");
      text += known->second;
      at_ = semicolon + 1;
    }
  }

  void Attribute(std::size_t index) {
    const std::string key = Word();
    if (key.rfind("on", 0) == 0 || key == "src" || key == "style") Fail("attribute " + key);
    Expect("=\"");
    const std::string value = Characters('"');
    Expect("\"");
    Check(key != "href" || value == "data:," || value.rfind("#section-", 0) == 0, "a link out");
    Check(elements_[index].attributes.emplace(key, value).second, "an attribute twice");
  }

  void Element(int parent) {
    Expect("<");
    const std::size_t index = elements_.size();
    elements_.emplace_back();
    elements_[index].parent = parent;
    const std::string name = Word();
    elements_[index].name = name;
    if (Names().count(name) == 0) Fail("an element " + name);
    while (page_[at_] == ' ') {
      ++at_;
      Attribute(index);
    }
    const bool closed = page_.compare(at_, 2, "/>") == 0;
    at_ += closed ? 1 : 0;
    Expect(">");
    if (closed || name == "meta" || name == "link") return;
    if (name == "style") {
      const std::size_t end = page_.find('<', at_);
      Check(end != std::string::npos, "unfinished style");
      elements_[index].text = page_.substr(at_, end - at_);
      at_ = end;
    }
    while (true) {
      Add(index, Characters('<'));
      if (page_.compare(at_, 2, "</") == 0) break;
      Element(static_cast<int>(index));
    }
    Expect("</" + name + ">");
  }

  void Add(std::size_t index, const std::string& text) {
    for (int i = static_cast<int>(index); i >= 0;
         i = elements_[static_cast<std::size_t>(i)].parent) {
      elements_[static_cast<std::size_t>(i)].text += text;
    }
  }

  const std::string& page_;
  std::size_t at_ = 0;
  std::vector<HtmlElement> elements_;
};

inline std::vector<HtmlElement> ReadHtml(const std::string& page) {
  return HtmlReader(page).elements();
}

inline std::vector<HtmlElement> HtmlNamed(const std::vector<HtmlElement>& all,
                                          const std::string& name) {
  std::vector<HtmlElement> found;
  for (const HtmlElement& element : all) {
    if (element.name == name) found.push_back(element);
  }
  return found;
}

// A table as its rows of texts, the header among them. What stands beside several rows is in the
// first of them.
struct HtmlTable {
  std::string caption;
  std::vector<std::vector<std::string>> rows;
};

inline std::vector<HtmlTable> TablesOf(const std::vector<HtmlElement>& all) {
  std::vector<HtmlTable> tables;
  for (const HtmlElement& element : all) {
    if (element.name == "table") tables.emplace_back();
    if (element.name == "caption") tables.back().caption = element.text;
    if (element.name == "tr") tables.back().rows.emplace_back();
    if (element.name == "th" || element.name == "td") {
      tables.back().rows.back().push_back(element.text);
    }
  }
  return tables;
}

// The table whose caption begins so.
inline HtmlTable TableOf(const std::vector<HtmlElement>& all, const std::string& caption) {
  for (const HtmlTable& table : TablesOf(all)) {
    if (table.caption.rfind(caption, 0) == 0) return table;
  }
  throw std::runtime_error("no table " + caption);
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_HTML_H_

#include "predictor/web/page.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "predictor/json/json.h"
#include "predictor/web/records.h"

// The page as page/build.mjs makes it, with two marks for what is put in here.
__asm__(
    ".section .rodata\n"
    ".global stepcast_page_begin\n"
    ".global stepcast_page_end\n"
    "stepcast_page_begin:\n"
    ".incbin \"" STEPCAST_PAGE
    "\"\n"
    "stepcast_page_end:\n"
    ".previous\n");
extern "C" const char stepcast_page_begin[];
extern "C" const char stepcast_page_end[];

namespace stepcast::web {
namespace {

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t size = std::min<std::size_t>(3, bytes.size() - i);
    unsigned int bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (k < size ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= size ? kDigits[bits >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

// JSON that no reader of HTML takes for markup.
std::string ScriptText(const Json& json) {
  std::string text;
  for (const char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string MakePage(const serve::Inventory& inventory, const Sources& sources) {
  Json files = {{"clusters", Json::object()}, {"workloads", Json::object()}};
  for (std::size_t i = 0; i < inventory.clusters.size(); ++i) {
    files["clusters"][inventory.clusters[i].name] = sources.clusters[i];
  }
  for (std::size_t i = 0; i < inventory.workloads.size(); ++i) {
    files["workloads"][inventory.workloads[i].name] = sources.workload_files[i];
  }
  std::string_view rest(stepcast_page_begin,
                        static_cast<std::size_t>(stepcast_page_end - stepcast_page_begin));
  std::string page;
  const auto put = [&](std::string_view mark, const std::string& text) {
    const std::size_t at = rest.find(mark);
    page.append(rest.substr(0, at));
    page += text;
    rest.remove_prefix(at + mark.size());
  };
  put("@STEPCAST_FILES@", ScriptText(files));
  put("@STEPCAST_RECORDS@", Base64(WriteRecords(inventory)));
  page.append(rest);
  return page;
}

}  // namespace stepcast::web

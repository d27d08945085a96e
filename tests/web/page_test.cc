// The page as the program writes it: what stands in it is what is served, byte for byte.
#include "predictor/web/page.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "data/io/machines.h"
#include "predictor/web/records.h"

namespace stepcast::web {
namespace {

// Base64 as RFC 4648 has it, with its padding; what is none fails the test.
std::string FromBase64(const std::string& text) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  EXPECT_EQ(text.size() % 4, 0U);
  std::string bytes;
  unsigned int bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool padding = text[i] == '=';
    const std::size_t digit = padding ? 0 : digits.find(text[i]);
    EXPECT_NE(digit, std::string::npos) << text[i];
    EXPECT_TRUE(!padding || i + 2 >= text.size()) << "padding at " << i << " of " << text.size();
    bits = bits << 6 | static_cast<unsigned int>(digit);
    if (i % 4 != 3) continue;
    for (const int shift : {16, 8, 0}) bytes += static_cast<char>(bits >> shift & 0xFFU);
    bits = 0;
  }
  const std::size_t end = text.find('=');
  if (end != std::string::npos) bytes.resize(bytes.size() - (text.size() - end));
  return bytes;
}

std::string RecordsIn(const std::string& page) {
  const std::string begin = R"(id="records">)";
  const std::size_t at = page.find(begin) + begin.size();
  return FromBase64(page.substr(at, page.find('<', at) - at));
}

TEST(WrittenPage, HasTheRecordsByteForByte) {
  serve::Inventory inventory;
  inventory.clusters.push_back(
      ReadCluster(std::string(STEPCAST_SOURCE_DIR) + "/data/machines/gce-t4.yaml"));
  std::set<std::size_t> lengths;
  for (int i = 0; i < 3; ++i) {
    inventory.clusters[0].title += "x";  // a byte more each time
    const std::string records = WriteRecords(inventory);
    lengths.insert(records.size() % 3);
    EXPECT_EQ(RecordsIn(MakePage(inventory, {{"gce-t4"}, {}})), records) << records.size();
  }
  EXPECT_EQ(lengths.size(), 3U) << "each padding was tried";
}

// What stands between the tags of a script ends it nowhere, and is what was put there.
TEST(WrittenPage, NamesDoNotEndTheirScript) {
  serve::Inventory inventory;
  inventory.clusters.push_back(
      ReadCluster(std::string(STEPCAST_SOURCE_DIR) + "/data/machines/gce-t4.yaml"));
  const std::string name = "</script><b>1 < 2 > 1</b>";
  inventory.clusters[0].name = name;
  const std::string page = MakePage(inventory, {{"<!-- a.yaml"}, {}});
  const std::string begin = R"(id="files">)";
  const std::size_t at = page.find(begin) + begin.size();
  const std::string files = page.substr(at, page.find("</script>", at) - at);
  EXPECT_EQ(files.find('<'), std::string::npos) << files;
  EXPECT_EQ(nlohmann::json::parse(files),
            (nlohmann::json{{"clusters", {{name, "<!-- a.yaml"}}},
                            {"workloads", nlohmann::json::object()}}));
}

}  // namespace
}  // namespace stepcast::web

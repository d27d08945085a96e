// Each door, opened with the inputs that are kept for it: seeds, and what fuzzing has found.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <ctime>
#include <filesystem>
#include <ostream>
#include <set>
#include <string>

#include "tests/fuzz/door.h"

namespace stepcast::fuzz {

static void PrintTo(const Door& door, std::ostream* out) { *out << door.name; }

namespace {

const std::filesystem::path kCorpus = STEPCAST_SOURCE_DIR "/tests/fuzz/corpus";

class Corpus : public ::testing::TestWithParam<Door> {};

// Nor does any of them, of at most 1 MB, take more than 2 s or 500 MB.
TEST_P(Corpus, KeepsWhatItPromises) {
  constexpr double kMostSeconds = 2;
  constexpr long kMostKibibytes = 500'000'000 / 1024;
  int taken = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus / GetParam().name)) {
    SCOPED_TRACE(entry.path());
    const std::string input = FileContent(entry.path().string());
    const std::clock_t begun = std::clock();
    EXPECT_NO_THROW(taken += Open(GetParam(), input) ? 1 : 0);
    EXPECT_LE(static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC, kMostSeconds);
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    EXPECT_LE(used.ru_maxrss, kMostKibibytes);
  }
  EXPECT_GT(taken, 0) << "all inputs are refused: they show nothing";
}
INSTANTIATE_TEST_SUITE_P(Doors, Corpus, ::testing::ValuesIn(Doors()),
                         [](const auto& param_info) { return param_info.param.name; });

// Nothing is kept for a door that is not there, which would be opened by nobody.
TEST(CorpusOfDoors, NamesThem) {
  std::set<std::string> doors;
  for (const Door& door : Doors()) doors.insert(door.name);
#ifndef STEPCAST_HAS_ONNX
  doors.insert("onnx");
#endif
  for (const char* folder : {"corpus", "dictionaries"}) {
    for (const auto& entry : std::filesystem::directory_iterator(kCorpus.parent_path() / folder)) {
      EXPECT_TRUE(doors.contains(entry.path().stem())) << entry.path();
    }
  }
}

}  // namespace
}  // namespace stepcast::fuzz

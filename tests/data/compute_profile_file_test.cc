// Profiles as files: nothing that was measured is lost, and nothing that was not is read.
#include "data/io/compute_profile_file.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "data/workloads/catalog.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

ComputeProfile Header() {
  ComputeProfile profile;
  profile.device.name = "NVIDIA H200";
  profile.device.kind = "gpu";
  profile.device.facts = {{"driver", "550.54"}, {"memory", "141 GB"}};
  profile.backend = "cudnn";
  profile.settings = {{"layout", "channels-first"}};
  profile.version = "0.1.0";
  profile.started = "2026-01-31T12:00:00Z";
  return profile;
}

MeasuredSamples Dense() {
  MeasuredSamples samples;
  samples.point = {DenseOp{1, 512, 1000, true}, 8, Precision::kFp32, TrainingPass::kForward};
  samples.seconds = {0.00125, 0.001, 0.0011};
  samples.algorithm = "gemm \"tn\"";
  samples.reference_s = 0.0005;
  samples.at = "2026-01-31T12:00:01Z";
  return samples;
}

ComputeProfile Profile() {
  ComputeProfile profile = Header();
  profile.samples.push_back(Dense());
  MeasuredSamples busy = Dense();
  busy.point.pass = TrainingPass::kBackward;
  busy.point.precision = Precision::kBf16;
  busy.busy = true;
  profile.samples.push_back(busy);
  MeasuredSamples throttled = Dense();
  throttled.point.operation = CopyOp{4096};
  throttled.throttled = true;
  throttled.algorithm.clear();
  throttled.at.clear();
  throttled.reference_s = 0;
  profile.samples.push_back(throttled);
  for (const PointStatus status : {PointStatus::kOutOfMemory, PointStatus::kUnsupported}) {
    MeasuredSamples failed;
    failed.point = {RecurrentOp{}, 1'000'000, Precision::kFp16, TrainingPass::kForward};
    failed.status = status;
    failed.reason = "needs 93 GiB, 79 GiB are free";
    profile.samples.push_back(failed);
  }
  MeasuredSamples update;
  update.point = {UpdateOp{Optimizer::kAdam, 512'000}, 1, Precision::kFp32, TrainingPass::kUpdate};
  update.seconds = {1e-5};
  profile.samples.push_back(update);
  return profile;
}

void ExpectEqual(const MeasuredSamples& a, const MeasuredSamples& b) {
  EXPECT_EQ(a.point, b.point);
  EXPECT_EQ(a.status, b.status);
  EXPECT_EQ(a.seconds, b.seconds);
  EXPECT_EQ(a.algorithm, b.algorithm);
  EXPECT_EQ(a.reason, b.reason);
  EXPECT_EQ(a.busy, b.busy);
  EXPECT_EQ(a.throttled, b.throttled);
  EXPECT_EQ(a.reference_s, b.reference_s);
  EXPECT_EQ(a.at, b.at);
}

void ExpectEqual(const ComputeProfile& a, const ComputeProfile& b) {
  EXPECT_EQ(a.device.name, b.device.name);
  EXPECT_EQ(a.device.kind, b.device.kind);
  EXPECT_EQ(a.device.facts, b.device.facts);
  EXPECT_EQ(a.backend, b.backend);
  EXPECT_EQ(a.settings, b.settings);
  EXPECT_EQ(a.version, b.version);
  EXPECT_EQ(a.started, b.started);
  ASSERT_EQ(a.samples.size(), b.samples.size());
  for (std::size_t i = 0; i < a.samples.size(); ++i) {
    SCOPED_TRACE(i);
    ExpectEqual(a.samples[i], b.samples[i]);
  }
}

ReadProfile Parse(const std::string& text) { return ParseComputeProfile(text, "h200.jsonl"); }

// ---- Round trips.

TEST(ComputeProfileFile, RoundTrips) {
  const ComputeProfile profile = Profile();
  const std::string text = FormatComputeProfile(profile);
  const ReadProfile read = Parse(text);
  ExpectEqual(read.profile, profile);
  EXPECT_FALSE(read.torn);
  EXPECT_EQ(read.whole_bytes, text.size());
  EXPECT_EQ(FormatComputeProfile(read.profile), text);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 7) << "one line each";

  const TempFolder folder;
  ExpectEqual(ReadComputeProfile(folder.Write("p.jsonl", text)).profile, profile);
}

TEST(ComputeProfileFile, AHeaderAloneIsAProfile) {
  const ReadProfile read = Parse(FormatProfileHeader(Header()));
  ExpectEqual(read.profile, Header());
  EXPECT_TRUE(read.profile.samples.empty());
  EXPECT_FALSE(read.torn);
}

// Keys and their meaning are a contract.
TEST(ComputeProfileFile, LinesAsTheHeaderWritesThem) {
  EXPECT_EQ(
      FormatProfileHeader(Header()),
      R"({"stepcast_profile":1,"backend":"cudnn","device":{"name":"NVIDIA H200","kind":"gpu",)"
      R"("facts":{"driver":"550.54","memory":"141 GB"}},"settings":{"layout":)"
      R"("channels-first"},"version":"0.1.0","started":"2026-01-31T12:00:00Z"})"
      "\n");
  EXPECT_EQ(FormatProfileSamples(Dense()),
            R"({"operation":"dense inputs=512 units=1000 bias=yes","batch":8,"precision":"fp32",)"
            R"("pass":"forward","seconds":[0.00125,0.001,0.0011],"algorithm":"gemm \"tn\"",)"
            R"("reference_s":0.0005,"at":"2026-01-31T12:00:01Z"})"
            "\n");
}

TEST(ComputeProfileFile, SecondsKeepSevenDigits) {
  MeasuredSamples samples = Dense();
  samples.seconds = {1.23456789e-6, 123456.789};
  const ReadProfile read = Parse(FormatProfileHeader(Header()) + FormatProfileSamples(samples));
  EXPECT_EQ(read.profile.samples.at(0).seconds, (std::vector<double>{1.234568e-6, 123456.8}));
}

TEST(ComputeProfileFile, AnyLineEndAndKeyOrder) {
  std::string text = FormatComputeProfile(Profile());
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) {
    text.insert(at, "\r");
  }
  ExpectEqual(Parse(text).profile, Profile());
  const ReadProfile read = Parse(
      FormatProfileHeader(Header()) +
      R"( {"seconds": [2e-3, 1], "pass": "update", "status": "measured", "precision": "fp32", )"
      R"("batch": 1, "operation": "update optimizer=sgd parameters=9", "busy": false})"
      "\n");
  ASSERT_EQ(read.profile.samples.size(), 1U);
  EXPECT_EQ(read.profile.samples[0].seconds, (std::vector<double>{0.002, 1}));
  EXPECT_FALSE(read.profile.samples[0].busy);
}

TEST(ComputeProfileFile, EveryOperationOfTheCatalogue) {
  ComputeProfile profile = Header();
  for (const std::string& name : WorkloadNames()) {
    const Workload workload = *FindWorkload(name);
    for (const Layer& layer : workload.layers) {
      MeasuredSamples samples = Dense();
      samples.point.operation = layer.operation;
      profile.samples.push_back(samples);
    }
  }
  ASSERT_GT(profile.samples.size(), 1000U);
  ExpectEqual(Parse(FormatComputeProfile(profile)).profile, profile);
}

RC_GTEST_PROP(ComputeProfileFileProperty, TextsOfAnyBytesRoundTripOrAreReplaced,
              (const std::string& text)) {
  ComputeProfile profile = Header();
  profile.samples.push_back(Dense());
  profile.samples[0].algorithm = text;
  const ReadProfile read = Parse(FormatComputeProfile(profile));
  RC_ASSERT(read.profile.samples.size() == 1U);
  const bool ascii = std::all_of(text.begin(), text.end(), [](char c) { return c > 0; });
  if (ascii) RC_ASSERT(read.profile.samples[0].algorithm == text);
}

// A driver may call a device anything.
TEST(ComputeProfileFile, AHeaderOfAnyBytesIsWritten) {
  ComputeProfile profile = Header();
  profile.device.name = "GPU \xff";
  profile.device.facts["note"] = "\xc3";
  std::string text;
  ASSERT_NO_THROW(text = FormatComputeProfile(profile));
  EXPECT_EQ(Parse(text).profile.device.name.substr(0, 4), "GPU ");
}

// ---- Interrupted writes.

// Whole lines are kept, and what is left is the prefix that holds them. `read` reads a text.
template <class Read>
void ExpectTheTearIsMended(const ComputeProfile& profile, std::size_t bytes, const Read& read) {
  SCOPED_TRACE(bytes);
  const std::string cut = FormatComputeProfile(profile).substr(0, bytes);
  if (cut.size() < FormatProfileHeader(profile).size()) {
    EXPECT_TRUE(Says(ErrorOf([&] { read(cut); }), "is no profile"));
    return;
  }
  std::optional<ReadProfile> mended;
  ASSERT_NO_THROW(mended = read(cut));
  EXPECT_EQ(mended->whole_bytes, cut.rfind('\n') + 1);
  EXPECT_EQ(mended->torn, cut.back() != '\n');
  const auto lines = std::count(cut.begin(), cut.end(), '\n');
  ASSERT_EQ(mended->profile.samples.size(), static_cast<std::size_t>(lines - 1));
  for (std::size_t i = 0; i < mended->profile.samples.size(); ++i) {
    ExpectEqual(mended->profile.samples[i], profile.samples[i]);
  }
}

TEST(ComputeProfileFile, ATornLastLineIsLeftOutWhereverItIsCut) {
  const std::size_t size = FormatComputeProfile(Profile()).size();
  for (std::size_t bytes = 1; bytes <= size; ++bytes) {
    ExpectTheTearIsMended(Profile(), bytes, Parse);
  }
}

// Also where the cut is within a character of several bytes.
TEST(ComputeProfileFile, ATornLastLineOfOtherLettersToo) {
  ComputeProfile profile = Header();
  profile.samples.push_back(Dense());
  profile.samples.push_back(Dense());
  profile.samples.back().algorithm = "größte Kachel 128 × 64";
  const TempFolder folder;
  const std::size_t last_line = FormatProfileSamples(profile.samples.back()).size();
  const std::size_t size = FormatComputeProfile(profile).size();
  for (std::size_t bytes = size - last_line; bytes <= size; ++bytes) {
    ExpectTheTearIsMended(profile, bytes, [&](const std::string& text) {
      return ReadComputeProfile(folder.Write("p.jsonl", text));
    });
  }
}

TEST(ComputeProfileFile, ATornFileGoesOnWhereItsWholeLinesEnd) {
  const std::string text = FormatComputeProfile(Profile());
  const ReadProfile read = Parse(text.substr(0, text.size() - 5));
  EXPECT_TRUE(read.torn);
  const std::string mended =
      text.substr(0, read.whole_bytes) + FormatProfileSamples(Profile().samples.back());
  ExpectEqual(Parse(mended).profile, Profile());
}

// Editors put a mark before the first line; the bytes are those of the file.
TEST(ComputeProfileFile, AByteOrderMarkIsCounted) {
  const TempFolder folder;
  const std::string text = "\xef\xbb\xbf" + FormatComputeProfile(Profile());
  const std::string path = folder.Write("p.jsonl", text.substr(0, text.size() - 5));
  const ReadProfile read = ReadComputeProfile(path);
  EXPECT_TRUE(read.torn);
  EXPECT_EQ(read.profile.samples.size(), Profile().samples.size() - 1);
  EXPECT_EQ(read.whole_bytes, text.rfind('\n', text.size() - 2) + 1);
}

// A torn line that is not the last is no interrupted write.
TEST(ComputeProfileFile, ATornLineInTheMiddleIsRefused) {
  const std::string header = FormatProfileHeader(Header());
  const std::string line = FormatProfileSamples(Dense());
  EXPECT_TRUE(
      Says(ErrorOf([&] { Parse(header + line.substr(0, 30) + "\n" + line); }), "h200.jsonl:2: "));
  EXPECT_TRUE(Says(ErrorOf([&] { Parse(header + line.substr(0, 30) + line); }), "is not JSON"));
}

// ---- Refusals.

std::string Replaced(std::string text, const std::string& what, const std::string& by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) throw std::logic_error("no " + what + " in " + text);
  return text.replace(at, what.size(), by);
}

struct Change {
  const char* what;
  const char* by;
  const char* says;
};

TEST(ComputeProfileFile, HeadersThatAreRefused) {
  const Change changes[] = {
      {"\"stepcast_profile\":1,", "", "stepcast_profile: is a required key that is missing"},
      {"\"stepcast_profile\":1", "\"stepcast_profile\":2", "stepcast_profile: '2' is not a whole"},
      {"\"stepcast_profile\":1", "\"stepcast_profile\":\"1\"", "stepcast_profile: '\"1\"' is not"},
      {"\"stepcast_profile\":1", "\"stepcast_profile\":1.0", "stepcast_profile: '1.0' is not"},
      {"\"stepcast_profile\":1", "\"stepcast_profile\":null", "stepcast_profile: 'null' is not"},
      {"\"backend\":\"cudnn\",", "", "backend: is a required key that is missing"},
      {"\"cudnn\"", "7", "backend: '7' is no text; allowed: a string"},
      {"\"cudnn\"", "[\"cudnn\"]", "backend: '[\"cudnn\"]' is no text"},
      {"\"name\":\"NVIDIA H200\",", "", "name: is a required key that is missing"},
      {"\"NVIDIA H200\"", "true", "name: 'true' is no text"},
      {"H200", "\x7fH200", "name: 'NVIDIA \\x7fH200' has a control character"},
      {"550.54", "550\\t54", "facts: '550\\x0954' has a control character"},
      {"0.1.0", "0.1\\u001f", "version: '0.1\\x1f' has a control character"},
      {"\"kind\":\"gpu\"", "\"kin\":\"gpu\"", "kind: is a required key that is missing"},
      {"\"kind\":\"gpu\"", "\"kind\":\"gpu\",\"cores\":2", "cores: is not a key of this line"},
      {"{\"driver\":\"550.54\",\"memory\":\"141 GB\"}", "[]", "facts: '[]' is no object"},
      {"\"141 GB\"", "141", "facts.memory: '141' is no text"},
      {"{\"layout\":\"channels-first\"}", "\"none\"", "settings: '\"none\"' is no object"},
      {"\"channels-first\"", "1", "settings.layout: '1' is no text"},
      {"\"version\":\"0.1.0\",", "", "version: is a required key that is missing"},
      {",\"started\":\"2026-01-31T12:00:00Z\"", "", "started: is a required key that is missing"},
      {"\"version\":", "\"versions\":\"1\",\"version\":", "versions: is not a key of this line"},
  };
  for (const Change& change : changes) {
    const std::string text = Replaced(FormatProfileHeader(Header()), change.what, change.by);
    const std::optional<InputError> error = ErrorOf([&] { Parse(text); });
    EXPECT_TRUE(Says(error, "h200.jsonl:1: ")) << text;
    EXPECT_TRUE(Says(error, change.says)) << text;
  }
  for (const char* device : {"7", "[]", "\"cpu\"", "null"}) {
    const std::string text =
        std::string(R"({"stepcast_profile":1,"backend":"x","device":)") + device + "}\n";
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(text); }), "h200.jsonl:1: ")) << text;
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(text); }), "is no object")) << text;
  }
}

TEST(ComputeProfileFile, LinesThatAreRefused) {
  const Change changes[] = {
      {"\"operation\":", "\"operations\":", "operation: is a required key that is missing"},
      {"\"dense inputs=512 units=1000 bias=yes\"", "512", "operation: '512' is no text"},
      {"dense inputs=512 units=1000 bias=yes", "", "operation: is empty; allowed: an operation"},
      {"inputs=512", "inputs=0", "'0' is out of range"},
      {"dense inputs", "tense inputs", "'tense' is not an operation"},
      {"\"batch\":8,", "", "batch: is a required key that is missing"},
      {"\"batch\":8", "\"batch\":0", "batch: '0' is not a whole number in range; allowed: 1 to"},
      {"\"batch\":8", "\"batch\":-8", "batch: '-8' is not a whole number in range"},
      {"\"batch\":8", "\"batch\":8.5", "batch: '8.5' is not a whole number in range"},
      {"\"batch\":8", "\"batch\":1000000001", "batch: '1000000001' is not a whole number"},
      {"\"batch\":8", "\"batch\":99999999999999999999", "is not a whole number in range"},
      {"\"batch\":8", "\"batch\":18446744073709551615", "is not a whole number in range"},
      {"\"batch\":8", "\"batch\":\"8\"", "batch: '\"8\"' is not a whole number in range"},
      {"\"batch\":8", "\"batch\":true", "batch: 'true' is not a whole number in range"},
      {"\"precision\":\"fp32\",", "", "precision: is a required key that is missing"},
      {"\"fp32\"", "\"fp64\"", "precision: 'fp64' is not one of them; allowed: fp32, tf32, fp16"},
      {"\"fp32\"", "32", "precision: '32' is no text"},
      {"\"pass\":\"forward\",", "", "pass: is a required key that is missing"},
      {"\"forward\"", "\"sideward\"", "pass: 'sideward' is not one of them; allowed: forward, "},
      {"\"forward\"", "\"update\"",
       "pass: 'update' is not a pass of this operation; allowed: forward, backward"},
      {"\"seconds\":[0.00125,0.001,0.0011],", "", "seconds: is a required key that is missing"},
      {"[0.00125,0.001,0.0011]", "[]", "seconds: '[]' is no list of times; allowed: at least one"},
      {"[0.00125,0.001,0.0011]", "0.001", "seconds: '0.001' is no list of times"},
      {"[0.00125,0.001,0.0011]", "{\"a\":1}", "is no list of times"},
      {"0.00125", "0", "seconds: '0' is not a time; allowed: seconds above 0 and at most 1e6"},
      {"0.00125", "0.0", "seconds: '0.0' is not a time"},
      {"0.00125", "-0.00125", "seconds: '-0.00125' is not a time"},
      {"0.00125", "1000001", "seconds: '1000001' is not a time"},
      {"0.00125", "\"1 ms\"", "seconds: '\"1 ms\"' is not a time"},
      {"0.00125", "null", "seconds: 'null' is not a time"},
      {"0.00125", "[0.1]", "seconds: '[0.1]' is not a time"},
      {"0.00125", "true", "seconds: 'true' is not a time"},
      {"0.00125", "NaN", "is not JSON"},
      {"0.00125", "Infinity", "is not JSON"},
      {"0.00125", "1e999", "is not JSON"},
      {"\"gemm \\\"tn\\\"\"", "1", "algorithm: '1' is no text"},
      {"\"reference_s\":0.0005", "\"reference_s\":0", "reference_s: '0' is not a time"},
      {"\"reference_s\":0.0005", "\"reference_s\":\"1\"", "reference_s: '\"1\"' is not a time"},
      {"\"at\":\"2026-01-31T12:00:01Z\"", "\"at\":1", "at: '1' is no text"},
      {"\"at\":", "\"busy\":1,\"at\":", "busy: '1' is no flag; allowed: true, false"},
      {"\"at\":", "\"throttled\":\"no\",\"at\":", "throttled: '\"no\"' is no flag"},
      {"\"at\":", "\"when\":", "when: is not a key of this line; allowed: algorithm"},
      {"\"at\":", "\"reason\":\"none\",\"at\":", "reason: is not a key of this line"},
      {"\"pass\"", "\"status\":\"lost\",\"pass\"",
       "status: 'lost' is not one of them; allowed: measured, out_of_memory, unsupported"},
      {"\"pass\"", "\"status\":\"out_of_memory\",\"pass\"",
       "reason: is a required key that is missing"},
      {"{", "[", "is not JSON"},
      {"\"batch\":8", "batch:8", "is not JSON"},
      {"}", "},", "is not JSON"},
      {"}", "}{}", "is not JSON"},
  };
  for (const Change& change : changes) {
    const std::string line = Replaced(FormatProfileSamples(Dense()), change.what, change.by);
    const std::optional<InputError> error =
        ErrorOf([&] { Parse(FormatProfileHeader(Header()) + line); });
    EXPECT_TRUE(Says(error, "h200.jsonl:2: ")) << line;
    EXPECT_TRUE(Says(error, change.says)) << line;
  }
  for (const char* line : {"[]", "7", "\"dense\"", "null"}) {
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(FormatProfileHeader(Header()) + line + "\n"); }),
                     "h200.jsonl:2: "))
        << line;
  }
  EXPECT_TRUE(Says(ErrorOf([] { Parse(FormatProfileHeader(Header()) + "\n"); }), "is not JSON"))
      << "an empty line";
}

TEST(ComputeProfileFile, WhatIsNoProfileAtAll) {
  EXPECT_TRUE(Says(ErrorOf([] { Parse(""); }), "h200.jsonl: is no profile: it has no line"));
  EXPECT_TRUE(Says(ErrorOf([] { Parse("name: t4"); }), "is no profile"));
  EXPECT_TRUE(Says(ErrorOf([] { Parse("name: t4\n"); }), "h200.jsonl:1: 'name: t4' is not JSON"));
  EXPECT_TRUE(Says(ErrorOf([] { Parse("{}\n"); }),
                   "stepcast_profile: is a required key that is missing; allowed: the first line"));
  EXPECT_TRUE(Says(ErrorOf([] { Parse(FormatProfileSamples(Dense())); }), "h200.jsonl:1: "));
  EXPECT_TRUE(
      Says(ErrorOf([] { Parse(FormatProfileHeader(Header()) + FormatProfileHeader(Header())); }),
           "h200.jsonl:2: "));
  const TempFolder folder;
  EXPECT_TRUE(Says(ErrorOf([&] { ReadComputeProfile(folder.Path("none.jsonl")); }), "none.jsonl"));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadComputeProfile(folder.Write("e.jsonl", "")); }),
                   "is no profile: it has no line"));
  EXPECT_TRUE(Says(ErrorOf([&] { ReadComputeProfile(folder.path()); }), folder.path()));
}

// Which of the two is meant nobody knows.
TEST(ComputeProfileFile, AKeyGivenTwiceIsRefused) {
  const std::string header = FormatProfileHeader(Header());
  const std::string line = FormatProfileSamples(Dense());
  for (const std::string& text :
       {Replaced(header, "\"backend\":", "\"backend\":\"onednn\",\"backend\":"),
        Replaced(header, "\"kind\":", "\"kind\":\"cpu\",\"kind\":"),
        Replaced(header, "\"driver\":", "\"driver\":\"1\",\"driver\":"),
        header + Replaced(line, "\"batch\":8", "\"batch\":8,\"batch\":16"),
        header + Replaced(line, "\"seconds\":", "\"seconds\":[1],\"seconds\":")}) {
    EXPECT_TRUE(Says(ErrorOf([&] { Parse(text); }), "h200.jsonl:")) << text;
  }
}

TEST(ComputeProfileFile, AnUpdateHasAPassOfItsOwn) {
  const std::string line = FormatProfileSamples(Profile().samples.back());
  for (const char* pass : {"\"forward\"", "\"backward\""}) {
    EXPECT_TRUE(Says(
        ErrorOf([&] { Parse(FormatProfileHeader(Header()) + Replaced(line, "\"update\"", pass)); }),
        "is not a pass of this operation; allowed: update"));
  }
}

// A point of an update has no batch, nor has one of an allocation.
TEST(ComputeProfileFile, UpdatesAndAllocationsHaveTheBatchOne) {
  MeasuredSamples allocation;
  allocation.point = {AllocateOp{4096}, 1, Precision::kFp32, TrainingPass::kForward};
  allocation.seconds = {1e-5};
  for (MeasuredSamples samples : {Profile().samples.back(), allocation}) {
    const auto read = [&] {
      return Parse(FormatProfileHeader(Header()) + FormatProfileSamples(samples));
    };
    EXPECT_EQ(read().profile.samples.at(0).point, samples.point);
    samples.point.batch = 8;
    EXPECT_TRUE(Says(ErrorOf(read), "h200.jsonl:2: batch: "));
  }
}

// ---- Hostile files.

// Nested without end: an error, and no crash.
TEST(ComputeProfileFileDeathTest, DeepNestingIsRefused) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  constexpr std::size_t kDepth = 1'000'000;
  for (const char* key : {"seconds", "operation", "new"}) {
    const std::string line =
        Replaced(FormatProfileSamples(Dense()), "\"batch\":8",
                 std::string("\"batch\":8,\"") + key + "\":" + std::string(kDepth, '[') +
                     std::string(kDepth, ']'));
    EXPECT_EXIT(
        {
          try {
            Parse(FormatProfileHeader(Header()) + line);
          } catch (const InputError&) {
            std::_Exit(7);
          }
          std::_Exit(1);
        },
        ::testing::ExitedWithCode(7), "")
        << key;
  }
}

// The smallest numbers that a double holds are refused, or can be written again.
TEST(ComputeProfileFile, TinyTimes) {
  for (const char* seconds : {"1e-300", "1e-308", "1e-310", "5e-324"}) {
    const std::string line = Replaced(FormatProfileSamples(Dense()), "0.00125", seconds);
    try {
      const ReadProfile read = Parse(FormatProfileHeader(Header()) + line);
      EXPECT_NO_THROW(FormatComputeProfile(read.profile)) << seconds;
    } catch (const InputError& error) {
      EXPECT_TRUE(Says(error, "is not a time")) << seconds;
    }
  }
}

// Bytes changed, lost, doubled and swapped: a profile or an InputError, and what was read can be
// written.
TEST(ComputeProfileFile, MutationsNeverCrash) {
  std::mt19937_64 engine(2026);
  const std::string good = FormatComputeProfile(Profile());
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(engine() % n); };
  const std::string symbols = "{}[]\",:0123456789.-+eE \n\\utfnalsx=_\x01\x7f\xc3\xff";
  int accepted = 0;
  constexpr int kMutations = 20'000;
  for (int i = 0; i < kMutations; ++i) {
    std::string text = good;
    for (std::size_t edits = 1 + below(4); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      switch (below(5)) {
        case 0:
          text[at] = symbols[below(symbols.size())];
          break;
        case 1:
          text.insert(at, 1, symbols[below(symbols.size())]);
          break;
        case 2:
          text.erase(at, 1 + below(20));
          break;
        case 3:
          text.insert(at, text.substr(below(text.size()), below(40)));
          break;
        default:
          text[at] = static_cast<char>(engine());
      }
      if (text.empty()) text = "{";
    }
    try {
      const ReadProfile read = Parse(text);
      ++accepted;
      ASSERT_LE(read.whole_bytes, text.size());
      const ReadProfile again = Parse(FormatComputeProfile(read.profile));
      ASSERT_EQ(again.profile.samples.size(), read.profile.samples.size());
    } catch (const InputError& error) {
      ASSERT_FALSE(error.problem().empty());
    } catch (const std::exception& error) {
      FAIL() << "not an InputError: " << error.what() << " of " << text;
    }
  }
  EXPECT_GT(accepted, 0) << "some changes do no harm";
  EXPECT_LT(accepted, kMutations / 2) << "most do";
}

TEST(ComputeProfileFile, FiftyThousandLinesAreReadAtOnce) {
  constexpr int kLines = 50'000;
  std::string text = FormatProfileHeader(Header());
  MeasuredSamples samples = Dense();
  samples.point.operation =
      ConvolutionOp{64, {56, 56}, 128, {3, 3}, {2, 2}, {1, 1}, {1, 1, 1, 1}, 1, false, true};
  for (int i = 1; i <= kLines; ++i) {
    samples.point.batch = i;
    text += FormatProfileSamples(samples);
  }
  const auto start = std::chrono::steady_clock::now();
  const ReadProfile read = Parse(text);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  ASSERT_EQ(read.profile.samples.size(), static_cast<std::size_t>(kLines));
  EXPECT_EQ(read.profile.samples.back().point.batch, kLines);
  EXPECT_LT(took.count(), 20) << "less than a second where nothing else runs";
}

}  // namespace
}  // namespace stepcast

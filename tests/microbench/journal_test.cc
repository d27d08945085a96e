#include "microbench/harness/journal.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <functional>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "data/io/compute_profile_file.h"
#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

ComputeProfile Header() {
  ComputeProfile profile;
  profile.device = {"Test Device", "cpu", {{"memory", "1 GiB"}, {"cores", "2"}}};
  profile.backend = "recorded";
  profile.settings = {{"layout", "channels-first"}, {"threads", "2"}};
  profile.version = "0.1.0";
  profile.started = "2026-01-31T12:00:00Z";
  return profile;
}

// The line with that number, told by its batch.
MeasuredSamples LineOf(int number) {
  MeasuredSamples samples;
  samples.point = {DenseOp{1, 512, 1000, true}, number, Precision::kFp32, TrainingPass::kForward};
  // Seven digits, which is what is written.
  samples.seconds = {number / 1000.0, 1.25 * number / 1000.0, 1.5 * number / 1000.0};
  samples.algorithm = "gemm";
  samples.reference_s = 0.001;
  samples.at = "2026-01-31T12:00:01Z";
  return samples;
}

MeasuredSamples UnmeasuredLine(const std::string& reason) {
  MeasuredSamples samples = LineOf(1);
  samples.status = PointStatus::kOutOfMemory;
  samples.seconds.clear();
  samples.algorithm.clear();
  samples.reason = reason;
  return samples;
}

void WriteJournal(const std::string& path, int lines) {
  Journal journal(path, Header());
  for (int i = 1; i <= lines; ++i) journal.Append(LineOf(i));
}

// The profile is lines 1, 2, ... of this test; returns how many.
int ExpectLines(const ComputeProfile& profile) {
  int number = 0;
  for (const MeasuredSamples& samples : profile.samples) {
    const MeasuredSamples expected = LineOf(++number);
    EXPECT_EQ(samples.point, expected.point);
    EXPECT_EQ(samples.seconds, expected.seconds);
  }
  return number;
}

std::optional<InputError> ErrorOfOpening(const std::string& path, const ComputeProfile& now) {
  return ErrorOf([&] { const Journal journal(path, now); });
}

// ---- Files that are there or not.

TEST(JournalTest, ANewFileBeginsWithTheHeader) {
  const TempFolder folder;
  const std::string path = folder.Path("new.jsonl");
  {
    const Journal journal(path, Header());
    EXPECT_FALSE(journal.resumed());
    EXPECT_FALSE(journal.was_torn());
    EXPECT_TRUE(journal.before().samples.empty());
    EXPECT_EQ(journal.before().backend, "recorded");
  }
  const ReadProfile read = ReadComputeProfile(path);
  EXPECT_FALSE(read.torn);
  EXPECT_EQ(read.profile.device.name, Header().device.name);
  EXPECT_EQ(read.profile.device.facts, Header().device.facts);
  EXPECT_EQ(read.profile.settings, Header().settings);
  EXPECT_EQ(read.profile.version, Header().version);
  EXPECT_EQ(read.profile.started, Header().started);
}

TEST(JournalTest, AnEmptyFileIsANewOne) {
  const TempFolder folder;
  const std::string path = folder.Write("empty", "");
  EXPECT_FALSE(Journal(path, Header()).resumed());
  EXPECT_EQ(FileContent(path), FormatProfileHeader(Header()));
}

// Whatever ends the program: a line is in the file when Append returns.
TEST(JournalTest, EveryLineIsThereAtOnce) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  Journal journal(path, Header());
  for (int i = 1; i <= 5; ++i) {
    journal.Append(LineOf(i));
    const ReadProfile read = ReadComputeProfile(path);
    EXPECT_FALSE(read.torn);
    EXPECT_EQ(ExpectLines(read.profile), i);
  }
}

TEST(JournalTest, GoesOnWhereItEnded) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  WriteJournal(path, 3);
  const std::string first = FileContent(path);
  ComputeProfile later = Header();
  later.version = "0.2.0";
  later.started = "2026-02-01T08:00:00Z";
  later.device.facts["clock"] = "another at this moment";
  {
    Journal journal(path, later);
    EXPECT_TRUE(journal.resumed());
    EXPECT_FALSE(journal.was_torn());
    EXPECT_EQ(journal.before().version, "0.1.0");
    EXPECT_EQ(ExpectLines(journal.before()), 3);
    EXPECT_EQ(FileContent(path), first);
    journal.Append(LineOf(4));
    EXPECT_EQ(journal.before().samples.size(), 3U) << "as it was opened";
  }
  EXPECT_EQ(FileContent(path), first + FormatProfileSamples(LineOf(4)));
}

TEST(JournalTest, LinesComeBackAsTheyWereWritten) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  MeasuredSamples flagged = LineOf(1);
  flagged.busy = true;
  MeasuredSamples throttled = LineOf(2);
  throttled.throttled = true;
  throttled.algorithm = "quotes \" and \\ and\nlines";
  {
    Journal journal(path, Header());
    journal.Append(flagged);
    journal.Append(throttled);
    journal.Append(UnmeasuredLine("needs 93 GiB, 79 GiB are free"));
  }
  const Journal journal(path, Header());
  ASSERT_EQ(journal.before().samples.size(), 3U);
  const std::vector<MeasuredSamples>& lines = journal.before().samples;
  EXPECT_TRUE(lines[0].busy);
  EXPECT_FALSE(lines[0].throttled);
  EXPECT_TRUE(lines[1].throttled);
  EXPECT_EQ(lines[1].algorithm, throttled.algorithm);
  EXPECT_DOUBLE_EQ(lines[1].reference_s, 0.001);
  EXPECT_EQ(lines[1].at, throttled.at);
  EXPECT_EQ(lines[2].status, PointStatus::kOutOfMemory);
  EXPECT_EQ(lines[2].reason, "needs 93 GiB, 79 GiB are free");
  EXPECT_TRUE(lines[2].seconds.empty());
}

// ---- Torn lines.

// Opens what is left of a journal of `lines` lines that ends with `last`, cut off at every byte.
void ExpectCutAtEveryByte(int lines, const MeasuredSamples& last) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  WriteJournal(path, lines);
  const std::string whole = FileContent(path);
  const std::string line = FormatProfileSamples(last);
  int refused = 0;
  std::string why;
  for (std::size_t bytes = 0; bytes <= line.size(); ++bytes) {
    folder.Write("p", whole + line.substr(0, bytes));
    const bool torn = bytes > 0 && bytes < line.size();
    try {
      Journal journal(path, Header());
      EXPECT_TRUE(journal.resumed());
      EXPECT_EQ(journal.was_torn(), torn) << bytes;
      if (torn) {
        EXPECT_EQ(ExpectLines(journal.before()), lines) << bytes;
        EXPECT_EQ(FileContent(path), whole) << bytes;
        journal.Append(last);
      }
      if (bytes > 0) {
        EXPECT_EQ(FileContent(path), whole + line) << bytes;
      }
    } catch (const std::exception& error) {
      ++refused;
      why = error.what();
    }
  }
  EXPECT_EQ(refused, 0) << "e.g. " << why;
}

TEST(JournalTest, ATornLineIsCutOffWhereverItIsTorn) { ExpectCutAtEveryByte(0, LineOf(1)); }

TEST(JournalTest, ATornLineMayEndWithinACharacter) {
  ExpectCutAtEveryByte(2, UnmeasuredLine("zu wenig Speicher f\xc3\xbcr 3 \xe2\x82\xac"));
}

// Nothing is lost with it: it is begun anew.
TEST(JournalTest, ATornHeaderIsWrittenAgain) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  const std::string header = FormatProfileHeader(Header());
  int refused = 0;
  std::string why;
  for (std::size_t bytes = 1; bytes < header.size(); ++bytes) {
    folder.Write("p", header.substr(0, bytes));
    try {
      const Journal journal(path, Header());
      EXPECT_TRUE(journal.was_torn()) << bytes;
      EXPECT_TRUE(journal.before().samples.empty()) << bytes;
      EXPECT_EQ(FileContent(path), header) << bytes;
    } catch (const InputError& error) {
      ++refused;
      why = error.what();
    }
  }
  EXPECT_EQ(refused, 0) << "e.g. " << why;
}

TEST(JournalTest, ATornLineBehindAByteOrderMarkIsCutOffAndNoMore) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  WriteJournal(path, 2);
  const std::string whole = "\xef\xbb\xbf" + FileContent(path);
  folder.Write("p", whole + "{\"operation\":");
  EXPECT_TRUE(Journal(path, Header()).was_torn());
  EXPECT_EQ(FileContent(path), whole);
}

// ---- Files of something else: refused, and left as they are.

struct Other {
  std::string key;
  std::function<void(ComputeProfile*)> change;
};

TEST(JournalTest, AnotherDeviceBackEndOrSettingIsRefusedByName) {
  const std::vector<Other> others = {
      {"device", [](ComputeProfile* p) { p->device.name = "Other Device"; }},
      {"device", [](ComputeProfile* p) { p->device.kind = "gpu"; }},
      {"backend", [](ComputeProfile* p) { p->backend = "onednn"; }},
      {"device.facts.driver", [](ComputeProfile* p) { p->device.facts["driver"] = "newer"; }},
      {"settings.layout", [](ComputeProfile* p) { p->settings["layout"] = "channels-last"; }},
      {"settings.threads", [](ComputeProfile* p) { p->settings["threads"] = "3"; }},
      {"settings.search", [](ComputeProfile* p) { p->settings["search"] = "yes"; }},
      {"settings.threads", [](ComputeProfile* p) { p->settings.erase("threads"); }},
  };
  const TempFolder folder;
  const std::string path = folder.Path("p");
  WriteJournal(path, 2);
  const std::string torn = FileContent(path) + "{\"oper";
  folder.Write("p", torn);
  for (std::size_t i = 0; i < others.size(); ++i) {
    ComputeProfile now = Header();
    others[i].change(&now);
    const std::optional<InputError> error = ErrorOfOpening(path, now);
    EXPECT_TRUE(Says(error, path)) << i;
    EXPECT_TRUE(Says(error, others[i].key)) << i;
    EXPECT_TRUE(FileContent(path) == torn) << i << ": the file was changed";
  }
}

TEST(JournalTest, BothValuesAreNamed) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  WriteJournal(path, 1);
  ComputeProfile now = Header();
  now.settings["layout"] = "channels-last";
  const std::optional<InputError> error = ErrorOfOpening(path, now);
  EXPECT_TRUE(Says(error, "channels-first"));
  EXPECT_TRUE(Says(error, "channels-last"));
}

TEST(JournalTest, AFileThatIsNoProfileIsLeftAsItIs) {
  const TempFolder folder;
  for (const std::string& content :
       {std::string("name: mine\nparameters: 1000\n"), std::string("notes without an end of line"),
        std::string("{}\n"), std::string("{\"stepcast_profile\":2}\n"), std::string("\n"),
        std::string("\x89PNG\r\n\x1a\n\0\0\0", 11),
        FormatProfileHeader(Header()) + "{\"operation\":\n{}"}) {
    const std::string path = folder.Write("p", content);
    EXPECT_TRUE(Says(ErrorOfOpening(path, Header()), path));
    EXPECT_EQ(FileContent(path), content);
  }
}

TEST(JournalTest, PathsThatCannotBeWritten) {
  const TempFolder folder;
  for (const std::string& path :
       {folder.path(), folder.Path("none/p"), folder.Write("file", "") + "/p",
        folder.Path(std::string(300, 'n')), std::string("/proc/version"), std::string("/dev/full"),
        std::string("/dev/null"), std::string()}) {
    EXPECT_NE(ErrorOfOpening(path, Header()), std::nullopt) << path;
  }
  EXPECT_TRUE(Says(ErrorOfOpening(folder.path(), Header()), folder.path()));
  EXPECT_TRUE(Says(ErrorOfOpening("/dev/full", Header()), "/dev/full"));
}

TEST(JournalTest, APipeIsRefusedAndNotWaitedFor) {
  const TempFolder folder;
  const std::string path = folder.Path("pipe");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(Says(ErrorOfOpening(path, Header()), "regular file"));
}

// ---- A full disk.

// No file grows beyond so many bytes while this lives.
class SizeLimit {
 public:
  explicit SizeLimit(std::size_t bytes) {
    getrlimit(RLIMIT_FSIZE, &old_);
    rlimit limit = old_;
    limit.rlim_cur = bytes;
    // Otherwise the signal ends the process.
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) throw std::runtime_error("no limit of file size");
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*handler_)(int) = SIG_DFL;
};

TEST(JournalTest, AFullDiskLeavesTheLinesBefore) {
  const std::string line = FormatProfileSamples(LineOf(3));
  for (std::size_t room = 0; room < line.size(); room += 7) {
    const TempFolder folder;
    const std::string path = folder.Path("p");
    WriteJournal(path, 2);
    const std::string before = FileContent(path);
    {
      Journal journal(path, Header());
      std::optional<InputError> error;
      {
        const SizeLimit limit(before.size() + room);
        error = ErrorOf([&] { journal.Append(LineOf(3)); });
      }
      EXPECT_TRUE(Says(error, path)) << room;
      EXPECT_TRUE(Says(error, "cannot be written")) << room;
      EXPECT_EQ(FileContent(path), before) << room;
      // There is room again.
      journal.Append(LineOf(3));
    }
    const Journal again(path, Header());
    EXPECT_FALSE(again.was_torn());
    EXPECT_EQ(ExpectLines(again.before()), 3);
  }
}

TEST(JournalTest, ADiskThatIsFullFromTheStartCanBeTriedAgain) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  std::optional<InputError> error;
  {
    const SizeLimit limit(20);
    error = ErrorOfOpening(path, Header());
  }
  EXPECT_TRUE(Says(error, "cannot be written"));
  EXPECT_EQ(FileContent(path), "");
  WriteJournal(path, 1);
  EXPECT_EQ(ExpectLines(ReadComputeProfile(path).profile), 1);
}

// ---- What must not end up in a profile.

// A line is refused or can be read again; it never spoils the file.
TEST(JournalTest, WhatIsNoTimeDoesNotSpoilTheFile) {
  for (const double seconds : {0.0, -1e-3, std::nan(""), HUGE_VAL, 1e7}) {
    const TempFolder folder;
    const std::string path = folder.Path("p");
    WriteJournal(path, 1);
    MeasuredSamples samples = LineOf(2);
    samples.seconds[1] = seconds;
    try {
      Journal(path, Header()).Append(samples);
    } catch (const std::exception& error) {
      EXPECT_STRNE(error.what(), "");
    }
    EXPECT_NO_THROW(Journal(path, Header())) << seconds;
  }
}

TEST(JournalTest, WordsInAnotherEncodingDoNotSpoilTheFile) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  ComputeProfile now = Header();
  now.device.name = "Ger\xe4t";
  now.device.facts["owner"] = "M\xfcller";
  try {
    Journal journal(path, now);
    journal.Append(UnmeasuredLine("zu gro\xdf"));
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  EXPECT_NO_THROW({
    const Journal again(path, now);
    EXPECT_TRUE(again.resumed());
    EXPECT_EQ(again.before().samples.size(), 1U);
  });
}

// ---- Other programs.

TEST(JournalTest, ASecondOneInThisProgramIsRefused) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  {
    Journal journal(path, Header());
    EXPECT_TRUE(Says(ErrorOfOpening(path, Header()), "another program"));
    journal.Append(LineOf(1));
  }
  EXPECT_EQ(ErrorOf([&] { WriteJournal(path, 0); }), std::nullopt);
  EXPECT_EQ(ExpectLines(ReadComputeProfile(path).profile), 1);
}

// A process of its own, killed at the end at the latest.
class Child {
 public:
  explicit Child(const std::function<void()>& act) : pid_(fork()) {
    if (pid_ < 0) throw std::runtime_error("cannot fork");
    if (pid_ == 0) {
      try {
        act();
      } catch (...) {
        _exit(1);
      }
      _exit(0);
    }
  }
  ~Child() { Kill(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Kills the process, and says whether it was this that ended it.
  bool Kill() {
    if (pid_ <= 0) return false;
    kill(pid_, SIGKILL);
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFSIGNALED(status);
  }

 private:
  pid_t pid_;
};

TEST(JournalTest, AnotherProgramsJournalIsRefusedUntilItEnds) {
  const TempFolder folder;
  const std::string path = folder.Path("p");
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  {
    Child child([&] {
      Journal journal(path, Header());
      journal.Append(LineOf(1));
      if (write(ready[1], "x", 1) != 1) return;
      for (;;) pause();
    });
    char byte = 0;
    ASSERT_EQ(read(ready[0], &byte, 1), 1);
    const std::string before = FileContent(path);
    const std::optional<InputError> error = ErrorOfOpening(path, Header());
    EXPECT_TRUE(Says(error, path));
    EXPECT_TRUE(Says(error, "another program"));
    EXPECT_EQ(FileContent(path), before);
    EXPECT_TRUE(child.Kill());
  }
  close(ready[0]);
  close(ready[1]);
  const Journal journal(path, Header());
  EXPECT_TRUE(journal.resumed());
  EXPECT_EQ(ExpectLines(journal.before()), 1);
}

TEST(JournalTest, AProgramThatIsKilledAtAnyMomentLosesNoLine) {
  constexpr int kKills = 30;
  constexpr int kMostLines = 3000;
  const TempFolder folder;
  const std::string path = folder.Path("p");
  std::mt19937 random(1);
  // A program that begins more slowly is given longer, until it has written something.
  int longest_wait_us = 4000;
  int lines = 0;
  std::string before;
  for (int i = 0; i < kKills; ++i) {
    {
      Child child([&] {
        Journal journal(path, Header());
        int number = static_cast<int>(journal.before().samples.size());
        while (number < kMostLines) journal.Append(LineOf(++number));
        for (;;) pause();
      });
      std::uniform_int_distribution<int> wait_us(0, longest_wait_us);
      std::this_thread::sleep_for(std::chrono::microseconds(wait_us(random)));
      EXPECT_TRUE(child.Kill()) << "it ended by itself";
    }
    try {
      const Journal journal(path, Header());
      const int now = ExpectLines(journal.before());
      EXPECT_GE(now, lines);
      lines = now;
      if (lines == 0) longest_wait_us = std::min(2 * longest_wait_us, 1'000'000);
    } catch (const InputError& error) {
      FAIL() << "after " << i << " kills: " << error.what();
    }
    const std::string content = FileContent(path);
    EXPECT_EQ(content.compare(0, before.size(), before), 0) << "earlier lines changed";
    before = content;
  }
  EXPECT_GT(lines, 0);
}

}  // namespace
}  // namespace stepcast

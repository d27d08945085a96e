#include "data/io/text_file.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "tests/support/input_error.h"
#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

TEST(CheckText, NamesTheLineThatIsNoText) {
  const std::string nul(1, '\0');
  for (int line = 1; line <= 3; ++line) {
    const std::string before(static_cast<std::size_t>(line - 1), '\n');
    const auto error = ErrorOf([&] { CheckText(before + "x" + nul + "\ny\n", "a"); });
    ASSERT_TRUE(Says(error, "contains a NUL byte"));
    EXPECT_EQ(error->place().line, line);
    const auto other = ErrorOf([&] { CheckText(before + "x\xff\ny\n", "a"); });
    ASSERT_TRUE(Says(other, "is not UTF-8 text"));
    EXPECT_EQ(other->place().line, line);
  }
}

TEST(ReadTextFile, GivesTheBytesWithoutTheMark) {
  const TempFolder folder;
  EXPECT_EQ(ReadTextFile(folder.Write("a", "x\r\ny\n"), 100), "x\r\ny\n");
  EXPECT_EQ(ReadTextFile(folder.Write("b", "\xef\xbb\xbfx"), 100), "x");
  EXPECT_EQ(ReadTextFile(folder.Write("c", ""), 100), "");
}

TEST(ReadTextFile, AForbiddenFileIsAnError) {
  const TempFolder folder;
  const std::string path = folder.Write("secret", "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  if (std::ifstream(path)) GTEST_SKIP() << "the tests run as root, who can read everything";
  EXPECT_TRUE(Says(ErrorOf([&] { ReadTextFile(path, 100); }),
                   path + ": cannot be read: Permission denied"));
}

TEST(ReadTextFile, TheLimitIsInclusive) {
  const TempFolder folder;
  const std::string text(std::size_t{1} << 20, 'x');
  EXPECT_EQ(ReadTextFile(folder.Write("a", text), text.size()), text);
  const std::string path = folder.Write("a", text + "x");
  const auto error = ErrorOf([&] { ReadTextFile(path, text.size()); });
  EXPECT_TRUE(Says(error, path + ": is too large; allowed: at most 1 MiB"));
}

// A pipe has no size to ask for beforehand.
TEST(ReadTextFile, WhatHasNoSizeIsCounted) {
  const auto error = ErrorOf([] { ReadTextFile("/dev/zero", std::size_t{1} << 20); });
  EXPECT_TRUE(Says(error, "/dev/zero: is too large"));
}

TEST(WriteTextFile, ReplacesAndLeavesNothingElse) {
  const TempFolder folder;
  const std::string path = folder.Write("out.yaml", "old");
  WriteTextFile(path, "new\n");
  EXPECT_EQ(FileContent(path), "new\n");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()),
                          std::filesystem::directory_iterator()),
            1);
}

TEST(WriteTextFile, ALinkStaysAndLeadsToTheText) {
  const TempFolder folder;
  const std::string path = folder.Write("out.yaml", "old");
  const std::string link = folder.Path("link.yaml");
  std::filesystem::create_symlink("out.yaml", link);
  WriteTextFile(link, "new\n");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(FileContent(path), "new\n");
}

// Where standard output is a file, /dev/stdout leads to one. It was replaced by the text: as root,
// for all programs.
TEST(WriteTextFile, ALinkToStandardOutputIsPrintedTo) {
  const std::string printed_to = "/proc/self/fd/1";
  if (!std::filesystem::exists(printed_to)) GTEST_SKIP() << "this system has no " << printed_to;
  const TempFolder folder;
  const std::string link = folder.Path("stdout");
  std::filesystem::create_symlink(printed_to, link);
  testing::internal::CaptureStdout();
  std::printf("before, ");
  WriteTextFile(link, "the text");
  std::printf(", after");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "before, the text, after");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
}

TEST(WriteTextFile, NeedsAName) {
  EXPECT_TRUE(Says(ErrorOf([] { WriteTextFile("", "text"); }), "output: names no file; allowed: "));
}

TEST(WriteTextFile, AFailureSaysWhyAndKeepsTheOldFile) {
  const TempFolder folder;
  const std::string missing = folder.Path("no/such/out.yaml");
  EXPECT_TRUE(Says(ErrorOf([&] { WriteTextFile(missing, "x"); }),
                   missing + ": cannot be written: No such file or directory"));
  EXPECT_TRUE(Says(ErrorOf([&] { WriteTextFile(folder.path(), "x"); }), "cannot be written: "));
  // The temporary file cannot be made where a folder has its name.
  const std::string path = folder.Write("out.yaml", "old");
  std::filesystem::create_directory(path + ".partial");
  EXPECT_TRUE(Says(ErrorOf([&] { WriteTextFile(path, "x"); }), path + ": cannot be written: "));
  EXPECT_EQ(FileContent(path), "old");
}

TEST(WriteTextFile, AFullDiskIsAnError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "this system has no /dev/full";
  EXPECT_TRUE(Says(ErrorOf([] { WriteTextFile("/dev/full", "x"); }),
                   "/dev/full: cannot be written: No space left on device"));
}

}  // namespace
}  // namespace stepcast

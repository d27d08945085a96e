#include "microbench/harness/load_backend.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/temp_file.h"

namespace stepcast {
namespace {

// There is no back end, and one sentence that names what it is about says why.
void ExpectSentence(const LoadedBackend& loaded, const std::string& about) {
  EXPECT_EQ(loaded.backend, nullptr);
  EXPECT_FALSE(loaded.message.empty());
  EXPECT_EQ(loaded.message.find_first_of("\r\n"), std::string::npos) << loaded.message;
  EXPECT_NE(loaded.message.find(about), std::string::npos) << loaded.message;
  EXPECT_NE(loaded.message.find(' '), std::string::npos) << loaded.message;
  if (!loaded.message.empty()) {
    EXPECT_NE(loaded.message.back(), '.') << "the program goes on with the sentence";
  }
}

// The file of a library that every C++ program has loaded and that is no back end.
std::string MathLibrary() {
  void* function = dlsym(RTLD_DEFAULT, "cbrt");
  Dl_info info{};
  if (function == nullptr || dladdr(function, &info) == 0) return {};
  return std::filesystem::canonical(info.dli_fname).string();
}

TEST(LoadBackendTest, AFolderWithoutTheModule) {
  const TempFolder folder;
  ExpectSentence(LoadBackend("onednn", {}, {folder.path()}), "onednn");
  ExpectSentence(LoadBackend("cuda", {}, {folder.path() + "/none", folder.path()}), "cuda");
  ExpectSentence(LoadBackend("cuda", {}, {}), "cuda");
}

TEST(LoadBackendTest, AFileThatIsNoLibrary) {
  const TempFolder folder;
  for (const std::string& content :
       {std::string(), std::string("not a library\n"), std::string(5000, '\0'),
        std::string("\x7f"
                    "ELF") +
            std::string(200, 'x')}) {
    folder.Write("stepcast-cuda.so", content);
    ExpectSentence(LoadBackend("cuda", {}, {folder.path()}), "cuda");
  }
}

TEST(LoadBackendTest, AFolderInPlaceOfTheModule) {
  const TempFolder folder;
  std::filesystem::create_directory(folder.Path("stepcast-cuda.so"));
  ExpectSentence(LoadBackend("cuda", {}, {folder.path()}), "cuda");
}

TEST(LoadBackendTest, ALinkThatLeadsNowhere) {
  const TempFolder folder;
  std::filesystem::create_symlink(folder.Path("gone.so"), folder.Path("stepcast-cuda.so"));
  std::filesystem::create_symlink(folder.Path("stepcast-onednn.so"),
                                  folder.Path("stepcast-onednn.so"));
  ExpectSentence(LoadBackend("cuda", {}, {folder.path()}), "cuda");
  ExpectSentence(LoadBackend("onednn", {}, {folder.path()}), "onednn");
}

TEST(LoadBackendTest, ALibraryWithoutTheFunction) {
  const std::string library = MathLibrary();
  ASSERT_FALSE(library.empty());
  const TempFolder folder;
  std::filesystem::create_symlink(library, folder.Path("stepcast-onednn.so"));
  ExpectSentence(LoadBackend("onednn", {}, {folder.path()}), "stepcast-onednn.so");
}

TEST(LoadBackendTest, TheFirstFolderThatHasTheModuleCounts) {
  const std::string library = MathLibrary();
  ASSERT_FALSE(library.empty());
  const TempFolder empty;
  const TempFolder first;
  const TempFolder second;
  std::filesystem::create_symlink(library, first.Path("stepcast-cuda.so"));
  second.Write("stepcast-cuda.so", "not a library");
  ExpectSentence(LoadBackend("cuda", {}, {empty.path(), first.path(), second.path()}),
                 first.Path("stepcast-cuda.so"));
  ExpectSentence(LoadBackend("cuda", {}, {empty.path(), second.path(), first.path()}),
                 second.Path("stepcast-cuda.so"));
}

TEST(LoadBackendTest, ModulesAreBesideTheProgramsFolder) {
  const std::vector<std::string> folders = ModuleFolders();
  ASSERT_FALSE(folders.empty());
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe");
  EXPECT_EQ(folders.front(), (program.parent_path().parent_path() / "lib/stepcast").string());
  for (const std::string& folder : folders) {
    EXPECT_TRUE(std::filesystem::path(folder).is_absolute()) << folder;
    EXPECT_EQ(folder.find(".."), std::string::npos) << folder;
  }
}

}  // namespace
}  // namespace stepcast

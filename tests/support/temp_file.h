// A folder of its own for each test, removed at the end.
#ifndef STEPCAST_TESTS_SUPPORT_TEMP_FILE_H_
#define STEPCAST_TESTS_SUPPORT_TEMP_FILE_H_

#include <cstdlib>  // mkdtemp
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace stepcast {

class TempFolder {
 public:
  TempFolder() : path_((std::filesystem::temp_directory_path() / "stepcast-XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error("no temporary folder");
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string Path(const std::string& name) const { return path_ + "/" + name; }

  // Writes a file, byte for byte, and returns its path.
  std::string Write(const std::string& name, const std::string& content) const {
    std::ofstream out(Path(name), std::ios::binary | std::ios::trunc);
    out << content;
    out.flush();
    if (!out) throw std::runtime_error("cannot write " + Path(name));
    return Path(name);
  }

 private:
  std::string path_;
};

// The bytes of a file; empty when there is none.
inline std::string FileContent(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_TEMP_FILE_H_

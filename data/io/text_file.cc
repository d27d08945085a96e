#include "data/io/text_file.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "data/values/utf8.h"

namespace stepcast {
namespace {

// Whether a link, as /dev/stdout is one, leads to where the program prints.
bool LeadsToStdout(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_symlink(path, error) &&
         std::filesystem::equivalent(path, "/dev/stdout", error);
}

}  // namespace

InputError IsFolder(const std::string& path) {
  return {{path, 0, ""}, "", "is a folder, not a file"};
}

InputError Unreadable(const std::string& path) {
  return {{path, 0, ""}, "", std::string("cannot be read: ") + std::strerror(errno)};
}

std::ifstream OpenFile(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw IsFolder(path);
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Unreadable(path);
  return in;
}

void CheckText(std::string_view text, const std::string& path) {
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view row = text.substr(begin, end - begin);
    if (!IsUtf8(row)) {
      throw InputError({path, line, ""}, "", "is not UTF-8 text", "a file saved as UTF-8");
    }
    if (row.find('\0') != std::string_view::npos) {
      throw InputError({path, line, ""}, "", "contains a NUL byte", "a text file");
    }
    begin = end + 1;
  }
}

std::string ReadTextFile(const std::string& path, std::size_t most_bytes) {
  std::ifstream in = OpenFile(path);
  const auto fail_too_large = [&] {
    throw InputError({path, 0, ""}, "", "is too large",
                     "at most " + std::to_string(most_bytes >> 20) + " MiB");
  };
  // A pipe has no size: it is counted as it is read.
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > most_bytes) fail_too_large();
  std::string text;
  char buffer[1 << 16];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > most_bytes) fail_too_large();
  }
  if (text.compare(0, 3, "\xef\xbb\xbf") == 0) text.erase(0, 3);
  CheckText(text, path);
  return text;
}

void WriteTextFile(const std::string& path, const std::string& text) {
  if (path.empty()) {
    throw InputError({"", 0, "output"}, "", "names no file", "the path of a file to write");
  }
  const auto fail = [&](const std::string& temporary) {
    const std::string reason = std::strerror(errno);
    std::error_code ignored;
    if (!temporary.empty()) std::filesystem::remove(temporary, ignored);
    throw InputError({path, 0, ""}, "", "cannot be written: " + reason);
  };
  if (LeadsToStdout(path)) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) fail("");
    return;
  }
  std::error_code error;
  // A device or a pipe has no place for a file beside it.
  const bool direct =
      std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  // A link stays: what it leads to is replaced.
  std::string file = path;
  if (!direct && std::filesystem::is_symlink(path, error)) {
    const std::filesystem::path led_to = std::filesystem::canonical(path, error);
    if (!error) file = led_to.string();
  }
  const std::string target = direct ? path : file + ".partial";
  {
    std::ofstream out(target, std::ios::binary | std::ios::trunc);
    if (!out) fail("");
    out << text;
    out.flush();
    if (!out) fail(direct ? "" : target);
  }
  if (direct) return;
  std::filesystem::rename(target, file, error);
  if (error) {
    errno = error.value();
    fail(target);
  }
}

}  // namespace stepcast

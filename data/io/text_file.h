// Files of text, read and written whole.
#ifndef STEPCAST_DATA_IO_TEXT_FILE_H_
#define STEPCAST_DATA_IO_TEXT_FILE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace stepcast {

// Throws InputError where `text`, which `path` names, is no UTF-8 or has a NUL byte (naming the
// line).
void CheckText(std::string_view text, const std::string& path);

// The whole of a file, as UTF-8 text without its byte order mark. Throws InputError when it cannot
// be read, is larger than `most_bytes`, or is not UTF-8 (naming the line).
std::string ReadTextFile(const std::string& path, std::size_t most_bytes);

// Writes by way of a temporary file beside the target, so that a failed write leaves the old one.
void WriteTextFile(const std::string& path, const std::string& text);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_TEXT_FILE_H_

// Files of text, read and written whole, and how any file is opened.
#ifndef STEPCAST_DATA_IO_TEXT_FILE_H_
#define STEPCAST_DATA_IO_TEXT_FILE_H_

#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>

#include "data/record/input_error.h"

namespace stepcast {

// A file that is a folder, or that cannot be read, as errno says.
InputError IsFolder(const std::string& path);
InputError Unreadable(const std::string& path);

// The bytes of a file. Throws InputError where there is none.
std::ifstream OpenFile(const std::string& path);

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

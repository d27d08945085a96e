#include "predictor/serve/binary.h"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "data/record/input_error.h"

namespace stepcast::serve {
namespace {

static_assert(std::endian::native == std::endian::little, "columns are copied as they are");

constexpr std::size_t kAlignment = 8;
std::size_t Padding(std::size_t bytes) { return (kAlignment - bytes % kAlignment) % kAlignment; }

}  // namespace

BinaryReader::BinaryReader(std::string_view message) : message_(message) {
  std::uint32_t length = 0;
  if (message.size() < sizeof length) Take("head", sizeof length);
  std::memcpy(&length, message.data(), sizeof length);
  head_ = Take("head", sizeof length + length).substr(sizeof length);
}

std::string_view BinaryReader::Take(const std::string& what, std::size_t bytes) {
  const std::size_t left = message_.size() - at_;
  if (left < bytes || left - bytes < Padding(bytes)) {
    throw InputError({"", 0, what}, "", fmt::format("is cut off: {} bytes are left", left),
                     fmt::format("{} bytes", bytes + Padding(bytes)));
  }
  const std::string_view taken = message_.substr(at_, bytes);
  at_ += bytes + Padding(bytes);
  return taken;
}

template <class T>
std::vector<T> BinaryReader::Next(const std::string& name, std::size_t size) {
  const std::string_view bytes = Take(name, size * sizeof(T));
  std::vector<T> column(size);
  if (size > 0) std::memcpy(column.data(), bytes.data(), bytes.size());
  return column;
}

void BinaryReader::Finish() const {
  if (at_ == message_.size()) return;
  throw InputError({"", 0, "columns"}, std::to_string(message_.size() - at_),
                   "bytes are left behind the last one", "what the head names");
}

BinaryWriter::BinaryWriter(std::string_view head, std::size_t bytes_of_columns) {
  const auto length = static_cast<std::uint32_t>(head.size());
  message_.reserve(sizeof length + head.size() + bytes_of_columns + 8 * kAlignment);
  message_.append(reinterpret_cast<const char*>(&length), sizeof length);  // NOLINT
  message_.append(head);
  message_.append(Padding(message_.size()), '\0');
}

template <class T>
void BinaryWriter::Add(const std::vector<T>& column) {
  message_.append(reinterpret_cast<const char*>(column.data()),
                  column.size() * sizeof(T));  // NOLINT
  message_.append(Padding(message_.size()), '\0');
}

template std::vector<int> BinaryReader::Next(const std::string& name, std::size_t size);
template std::vector<double> BinaryReader::Next(const std::string& name, std::size_t size);
template void BinaryWriter::Add(const std::vector<int>& column);
template void BinaryWriter::Add(const std::vector<double>& column);

}  // namespace stepcast::serve

// Columns as bytes, for those whose time goes into writing and reading numbers as text:
//
//   4 bytes    length of the head, an unsigned number
//   the head   JSON with "columns": "workers,link_gbit_per_s,..." and "size"
//   columns    each in the order of the head, `size` values of 4 or 8 bytes: whole numbers as
//              int32, all others as float64 (IEEE 754)
//
// Little endian; zeros pad the head and each column to a multiple of 8 bytes from the start.
#ifndef STEPCAST_PREDICTOR_SERVE_BINARY_H_
#define STEPCAST_PREDICTOR_SERVE_BINARY_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast::serve {

// Reads such a message from its start to its end.
class BinaryReader {
 public:
  // Throws InputError where the head is cut off.
  explicit BinaryReader(std::string_view message);

  std::string_view head() const { return head_; }
  // The next column of `size` values. Throws InputError, naming it, where it is cut off.
  template <class T>
  std::vector<T> Next(const std::string& name, std::size_t size);
  // Throws InputError where something is left.
  void Finish() const;

 private:
  std::string_view Take(const std::string& what, std::size_t bytes);

  std::string_view message_;
  std::size_t at_ = 0;
  std::string_view head_;
};

class BinaryWriter {
 public:
  BinaryWriter(std::string_view head, std::size_t bytes_of_columns);

  template <class T>
  void Add(const std::vector<T>& column);
  std::string Take() { return std::move(message_); }

 private:
  void Append(const void* bytes, std::size_t count);

  std::string message_;
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_BINARY_H_

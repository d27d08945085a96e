#include "data/onnx/model.h"

#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <vector>

#include "data/onnx/constants.h"
#include "data/record/input_error.h"

namespace stepcast {
namespace {

constexpr std::uintmax_t kMostFileBytes = (std::uintmax_t{1} << 31U) - 1;  // protobuf's own limit

// protobuf reports on stderr; what it says is in our error.
class SilentProtobuf {
 public:
  SilentProtobuf() : before_(google::protobuf::SetLogHandler(nullptr)) {}
  ~SilentProtobuf() { google::protobuf::SetLogHandler(before_); }
  SilentProtobuf(const SilentProtobuf&) = delete;
  SilentProtobuf& operator=(const SilentProtobuf&) = delete;

 private:
  google::protobuf::LogHandler* before_;
};

template <typename T>
std::vector<double> FromBytes(const std::string& bytes) {
  std::vector<double> values;
  for (std::size_t at = 0; at + sizeof(T) <= bytes.size(); at += sizeof(T)) {
    T value{};
    std::copy_n(bytes.data() + at, sizeof(T), reinterpret_cast<char*>(&value));
    values.push_back(static_cast<double>(value));
  }
  return values;
}

}  // namespace

onnx::ModelProto ReadOnnxModel(const std::string& path) {
  const InputPlace place{path, 0, ""};
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status)) throw InputError(place, "", "cannot be read");
  if (std::filesystem::is_directory(status)) throw InputError(place, "", "is a directory");
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (!error && bytes > kMostFileBytes) {
    throw InputError(place, "", "is larger than 2 GiB",
                     "a model whose weights are stored as external data");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(place, "", "cannot be read");
  const SilentProtobuf silent;
  onnx::ModelProto model;
  if (!model.ParseFromIstream(&file) || !model.has_graph()) {
    throw InputError(place, "", "is not an ONNX model, or not a whole one");
  }
  return model;
}

bool IsOnnxReal(int type) {
  return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::FLOAT16 ||
         type == onnx::TensorProto::DOUBLE || type == onnx::TensorProto::BFLOAT16;
}

OnnxDims DimsOf(const onnx::TensorProto& tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

std::optional<OnnxData> DataOf(const onnx::TensorProto& tensor) {
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) return std::nullopt;
  const OnnxDims dims = DimsOf(tensor);
  const std::optional<std::size_t> elements = FewOnnxElements(dims);
  OnnxData data{dims, {}, !IsOnnxReal(tensor.data_type())};
  // Of real tensors only scales and bounds are asked for, at most one for each axis.
  if (!elements || (!data.integer && *elements > kMostRank)) return std::nullopt;
  // `of_one` has the type of an element of raw data.
  const auto read = [&](auto of_one, const auto& stated) {
    data.values = tensor.has_raw_data() ? FromBytes<decltype(of_one)>(tensor.raw_data())
                                        : std::vector<double>(stated.begin(), stated.end());
  };
  switch (tensor.data_type()) {
    case onnx::TensorProto::INT64:
      read(std::int64_t(), tensor.int64_data());
      break;
    case onnx::TensorProto::INT32:
      read(std::int32_t(), tensor.int32_data());
      break;
    case onnx::TensorProto::BOOL:
      read(std::uint8_t(), tensor.int32_data());
      break;
    case onnx::TensorProto::FLOAT:
      read(float(), tensor.float_data());
      break;
    case onnx::TensorProto::DOUBLE:
      read(double(), tensor.double_data());
      break;
    default:
      return std::nullopt;
  }
  if (data.values.size() != *elements) return std::nullopt;
  return data;
}

OnnxAttribute AttributeOf(const onnx::AttributeProto& attribute) {
  switch (attribute.type()) {
    case onnx::AttributeProto::INT:
      return attribute.i();
    case onnx::AttributeProto::FLOAT:
      return static_cast<double>(attribute.f());
    case onnx::AttributeProto::STRING:
      return attribute.s();
    case onnx::AttributeProto::INTS:
      return OnnxDims(attribute.ints().begin(), attribute.ints().end());
    case onnx::AttributeProto::FLOATS:
      return std::vector<double>(attribute.floats().begin(), attribute.floats().end());
    case onnx::AttributeProto::TENSOR:
      if (std::optional<OnnxData> data = DataOf(attribute.t())) return *data;
      return std::monostate();
    default:
      return std::monostate();
  }
}

}  // namespace stepcast

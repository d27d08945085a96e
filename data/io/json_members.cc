#include "data/io/json_members.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "data/record/input_error.h"

namespace stepcast {
namespace {

constexpr const char* kSaved = "what was saved";

}  // namespace

void RefuseMember(const std::string& key, const std::string& value, const std::string& problem,
                  const std::string& allowed) {
  throw InputError({"", 0, key}, value, problem, allowed);
}

JsonMembers::JsonMembers(const nlohmann::json& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) {
    RefuseMember(where_.empty() ? "state" : where_, object.type_name(), "is no object", kSaved);
  }
}

const nlohmann::json& JsonMembers::Member(const char* name) {
  const auto it = object_.find(name);
  if (it == object_.end()) RefuseMember(Place(name), "", "is missing", kSaved);
  ++read_;
  return *it;
}

bool JsonMembers::Has(const char* name) const { return object_.contains(name); }

double JsonMembers::Number(const char* name, double least, double most) {
  return NumberOf(Member(name), Place(name), least, most);
}

std::int64_t JsonMembers::Whole(const char* name, double least, double most) {
  const nlohmann::json& value = Member(name);
  if (!value.is_number_integer()) {
    RefuseMember(Place(name), value.type_name(), "is no whole number");
  }
  return static_cast<std::int64_t>(NumberOf(value, Place(name), least, most));
}

bool JsonMembers::YesNo(const char* name) {
  const nlohmann::json& value = Member(name);
  if (!value.is_boolean()) {
    RefuseMember(Place(name), value.type_name(), "is neither true nor false");
  }
  return value.get<bool>();
}

std::string JsonMembers::Text(const char* name) { return TextOf(Member(name), Place(name)); }

const nlohmann::json& JsonMembers::Array(const char* name) {
  const nlohmann::json& value = Member(name);
  if (!value.is_array()) RefuseMember(Place(name), value.type_name(), "is no array");
  return value;
}

std::vector<double> JsonMembers::Numbers(const char* name) {
  std::vector<double> numbers;
  for (const nlohmann::json& number : Array(name)) {
    numbers.push_back(NumberOf(number, Place(name), -kMost, kMost));
  }
  return numbers;
}

Eigen::VectorXd JsonMembers::Vector(const char* name) {
  const std::vector<double> numbers = Numbers(name);
  return Eigen::Map<const Eigen::VectorXd>(numbers.data(),
                                           static_cast<Eigen::Index>(numbers.size()));
}

Eigen::MatrixXd JsonMembers::Triangle(const char* name) {
  const std::vector<double> numbers = Numbers(name);
  Eigen::Index size = 0;
  while (static_cast<std::size_t>(size * (size + 1) / 2) < numbers.size()) ++size;
  if (static_cast<std::size_t>(size * (size + 1) / 2) != numbers.size()) {
    RefuseMember(Place(name), std::to_string(numbers.size()) + " numbers", "are no triangle");
  }
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(size, size);
  std::size_t at = 0;
  for (Eigen::Index i = 0; i < size; ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) matrix(i, j) = numbers[at++];
  }
  return matrix;
}

void JsonMembers::Finish() const {
  if (read_ == object_.size()) return;
  RefuseMember(where_, std::to_string(object_.size()) + " members",
               "has members that are not known", std::to_string(read_));
}

std::string JsonMembers::Place(const char* name) const {
  return where_.empty() ? name : where_ + "." + name;
}

double JsonMembers::NumberOf(const nlohmann::json& value, const std::string& place, double least,
                             double most) {
  if (!value.is_number()) RefuseMember(place, value.type_name(), "is no number");
  const auto number = value.get<double>();
  if (!(number >= least && number <= most)) RefuseMember(place, value.dump(), "is out of range");
  return number;
}

std::string JsonMembers::TextOf(const nlohmann::json& value, const std::string& place) {
  if (!value.is_string()) RefuseMember(place, value.type_name(), "is no text");
  return value.get<std::string>();
}

}  // namespace stepcast

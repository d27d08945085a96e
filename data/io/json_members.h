// The members of a JSON object, each of which has to be there; no other may be. Included by the
// readers of this folder only.
#ifndef STEPCAST_DATA_IO_JSON_MEMBERS_H_
#define STEPCAST_DATA_IO_JSON_MEMBERS_H_

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace stepcast {

// Throws InputError.
[[noreturn]] void RefuseMember(const std::string& key, const std::string& value,
                               const std::string& problem, const std::string& allowed = "");

// Throws InputError for what is no such value; `where` is what comes before a member's name there.
class JsonMembers {
 public:
  static constexpr double kMost = 1e100;

  JsonMembers(const nlohmann::json& object, std::string where);

  const nlohmann::json& Member(const char* name);
  bool Has(const char* name) const;
  double Number(const char* name, double least, double most);
  std::int64_t Whole(const char* name, double least, double most);
  bool YesNo(const char* name);
  std::string Text(const char* name);
  const nlohmann::json& Array(const char* name);
  std::vector<double> Numbers(const char* name);
  Eigen::VectorXd Vector(const char* name);
  // Of a matrix, row by row, up to the diagonal.
  Eigen::MatrixXd Triangle(const char* name);
  // After the last member.
  void Finish() const;

  std::string Place(const char* name) const;
  static double NumberOf(const nlohmann::json& value, const std::string& place, double least,
                         double most);
  static std::string TextOf(const nlohmann::json& value, const std::string& place);

 private:
  const nlohmann::json& object_;
  std::string where_;
  std::size_t read_ = 0;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_JSON_MEMBERS_H_

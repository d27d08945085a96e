// A log that a program still writes, as its lines come.
//
// What stands in the file is read first, then what is added to it. A file that has become shorter,
// or behind whose name another one stands (a log that was rotated), is read from its beginning; of
// the old one what was added before is read to its end. Input that can end, as a pipe, ends.
#ifndef STEPCAST_DATA_LOGS_LOG_FOLLOWER_H_
#define STEPCAST_DATA_LOGS_LOG_FOLLOWER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "data/logs/log_lines.h"

namespace stepcast {

class LogFollower {
 public:
  enum class News { kLines, kNone, kEnd };

  // `path`, or standard input for "-". Throws InputError for what cannot be read.
  LogFollower(std::string path, std::function<void(const LogLine&)> take);
  ~LogFollower();
  LogFollower(const LogFollower&) = delete;
  LogFollower& operator=(const LogFollower&) = delete;

  // Reads a piece of what is there, and does not wait for more. Throws InputError for what can no
  // longer be read; a file that is gone may come back.
  News Read();
  // The last line, where nothing has ended it yet.
  void Finish() { lines_.Finish(); }
  int restarts() const { return restarts_; }  // files that were begun anew

 private:
  bool OpenNext();  // the file of that name, where it is another or has been cut

  std::string path_;
  LogLineCutter lines_;
  std::vector<char> buffer_;
  int descriptor_ = -1;
  bool is_file_ = false;
  std::int64_t read_ = 0;  // bytes of the file
  int restarts_ = 0;
};

}  // namespace stepcast

#endif  // STEPCAST_DATA_LOGS_LOG_FOLLOWER_H_

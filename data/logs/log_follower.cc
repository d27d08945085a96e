#include "data/logs/log_follower.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "data/io/text_file.h"

namespace stepcast {
namespace {

constexpr std::size_t kPiece = 1U << 16U;

}  // namespace

LogFollower::LogFollower(std::string path, std::function<void(const LogLine&)> take)
    : path_(std::move(path)), lines_(std::move(take)), buffer_(kPiece) {
  descriptor_ =
      path_ == "-" ? dup(STDIN_FILENO) : open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat facts {};
  if (descriptor_ < 0 || fstat(descriptor_, &facts) != 0) throw Unreadable(path_);
  if (S_ISDIR(facts.st_mode)) {
    close(descriptor_);
    throw IsFolder(path_);
  }
  // Standard input that is a file is read to its end: nobody knows its name.
  is_file_ = S_ISREG(facts.st_mode) && path_ != "-";
}

LogFollower::~LogFollower() { close(descriptor_); }

bool LogFollower::OpenNext() {
  struct stat old {};
  struct stat now {};
  if (fstat(descriptor_, &old) != 0 || stat(path_.c_str(), &now) != 0) return false;
  const bool is_another = old.st_ino != now.st_ino || old.st_dev != now.st_dev;
  if (!is_another && now.st_size >= read_) return false;
  if (is_another) {
    const int next = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (next < 0) return false;
    close(descriptor_);
    descriptor_ = next;
  } else if (lseek(descriptor_, 0, SEEK_SET) != 0) {
    throw Unreadable(path_);
  }
  lines_.BeginAnew();
  read_ = 0;
  ++restarts_;
  return true;
}

LogFollower::News LogFollower::Read() {
  pollfd ready{descriptor_, POLLIN, 0};
  if (!is_file_ && poll(&ready, 1, 0) == 0) return News::kNone;
  const ssize_t got = read(descriptor_, buffer_.data(), buffer_.size());
  if (got > 0) {
    read_ += got;
    lines_.Add({buffer_.data(), static_cast<std::size_t>(got)});
    return News::kLines;
  }
  if (got < 0) {
    if (errno == EINTR || errno == EAGAIN) return News::kNone;
    throw Unreadable(path_);
  }
  if (!is_file_) return News::kEnd;
  return OpenNext() ? News::kLines : News::kNone;
}

}  // namespace stepcast

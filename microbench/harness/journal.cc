#include "microbench/harness/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <stdexcept>

#include "data/io/compute_profile_file.h"
#include "data/record/input_error.h"

namespace stepcast {
namespace {

// More than any header takes.
constexpr off_t kMostHeader = 1 << 16;

// Whether a fact changes from one start to the next on the same device.
bool Varies(const std::string& fact) {
  return fact == "clock" || fact.find("_now") != std::string::npos;
}

using Facts = std::map<std::string, std::string>;

// The first name under which the two differ, with both values; empty where they are the same.
struct Difference {
  std::string name;
  std::string was;
  std::string is;
};
Difference FindDifference(const Facts& was, const Facts& is) {
  Facts names = was;
  names.insert(is.begin(), is.end());
  for (const auto& [name, value] : names) {
    const auto text = [&](const Facts& facts) {
      const auto it = facts.find(name);
      return it == facts.end() ? std::string("(none)") : it->second;
    };
    if (!Varies(name) && text(was) != text(is)) return {name, text(was), text(is)};
  }
  return {};
}

void RequireSame(const std::string& path, const ComputeProfile& old, const ComputeProfile& now) {
  const auto refuse = [&](const std::string& key, const std::string& was, const std::string& is) {
    throw InputError({path, 1, key}, was, "is not what is measured now, " + is,
                     "another --output for it");
  };
  if (old.device.name != now.device.name) refuse("device", old.device.name, now.device.name);
  if (old.device.kind != now.device.kind) refuse("device.kind", old.device.kind, now.device.kind);
  if (old.backend != now.backend) refuse("backend", old.backend, now.backend);
  if (const Difference d = FindDifference(old.device.facts, now.device.facts); !d.name.empty()) {
    refuse("device.facts." + d.name, d.was, d.is);
  }
  if (const Difference d = FindDifference(old.settings, now.settings); !d.name.empty()) {
    refuse("settings." + d.name, d.was, d.is);
  }
}

}  // namespace

Journal::Journal(const std::string& path, const ComputeProfile& now) : path_(path) {
  constexpr int kMode = 0644;
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  const auto fail = [&](const std::string& problem, const std::string& allowed) {
    if (file_ >= 0) close(file_);
    throw InputError({path, 0, ""}, "", problem, allowed);
  };
  if (file_ < 0) {
    fail(std::string("cannot be written: ") + std::strerror(errno), "a path that can be");
  }
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    fail("is being written by another program", "another --output, or wait for it");
  }
  struct stat status {};
  if (fstat(file_, &status) != 0 || !S_ISREG(status.st_mode)) {
    fail("is no regular file", "a file that lines can be appended to");
  }
  try {
    // A header that was torn holds nothing to lose, and is written again.
    const std::string header = FormatProfileHeader(now);
    const std::string start = header.substr(0, header.find(':') + 1);
    std::string head(static_cast<std::size_t>(std::min<off_t>(status.st_size, kMostHeader)), 0);
    head.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, pread(file_, head.data(), head.size(), 0))));
    if (!head.empty() && head.find('\n') == std::string::npos &&
        head.compare(0, start.size(), start, 0, head.size()) == 0) {
      if (ftruncate(file_, 0) != 0) {
        throw InputError({path, 0, ""}, "", "has a torn first line that cannot be cut off",
                         "a file that can be written");
      }
      was_torn_ = true;
      status.st_size = 0;
    }
    if (status.st_size > 0) {
      ReadProfile read = ReadComputeProfile(path);
      // As it would come back from the file.
      RequireSame(path, read.profile, ParseComputeProfile(header, path).profile);
      before_ = std::move(read.profile);
      resumed_ = true;
      was_torn_ = read.torn;
      if (read.torn && ftruncate(file_, static_cast<off_t>(read.whole_bytes)) != 0) {
        throw InputError({path, 0, ""}, "", "has a torn last line that cannot be cut off",
                         "a file that can be written");
      }
    } else {
      before_ = now;
      Write(header);
    }
  } catch (...) {
    close(file_);
    throw;
  }
}

Journal::~Journal() { close(file_); }

void Journal::Append(const MeasuredSamples& samples) {
  for (const double seconds : samples.seconds) {
    if (!IsRunTime(seconds)) {
      throw std::runtime_error("the device's clock gave a run of " + std::to_string(seconds) +
                               " s, which is no time");
    }
  }
  Write(FormatProfileSamples(samples));
}

void Journal::Write(const std::string& line) {
  struct stat before {};
  const bool known = fstat(file_, &before) == 0;
  std::size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = write(file_, line.data() + done, line.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const std::string why = std::strerror(errno);
      // Half a line is worse than none; should this fail too, the next start cuts it off.
      if (known && done > 0 && ftruncate(file_, before.st_size) != 0) done = 0;
      throw InputError({path_, 0, ""}, "", "cannot be written: " + why, "a disk with room");
    }
    done += static_cast<std::size_t>(n);
  }
}

}  // namespace stepcast

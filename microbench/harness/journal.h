// A profile file that grows while a campaign runs: a line is written when a point has been
// measured, so that whatever ends the program, the file is a valid profile and the next start goes
// on from it.
#ifndef STEPCAST_MICROBENCH_HARNESS_JOURNAL_H_
#define STEPCAST_MICROBENCH_HARNESS_JOURNAL_H_

#include <string>

#include "data/record/compute_profile.h"

namespace stepcast {

class Journal {
 public:
  // Opens `path` for appending and locks it until destruction. A new file begins with the header of
  // `now`; one that is there must be of the same device, back end and settings, and its torn last
  // line, if it has one, is cut off. Throws InputError where it is not, where another program has
  // it locked, and where it cannot be written.
  Journal(const std::string& path, const ComputeProfile& now);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  // Contents of the file when it was opened.
  const ComputeProfile& before() const { return before_; }
  bool resumed() const { return resumed_; }
  bool was_torn() const { return was_torn_; }

  // Appends one line. Throws InputError where it cannot be written, e.g. on a full disk; the file
  // is then as long as before.
  void Append(const MeasuredSamples& samples);

 private:
  void Write(const std::string& line);

  std::string path_;
  int file_ = -1;
  ComputeProfile before_;
  bool resumed_ = false;
  bool was_torn_ = false;
};

}  // namespace stepcast

#endif  // STEPCAST_MICROBENCH_HARNESS_JOURNAL_H_

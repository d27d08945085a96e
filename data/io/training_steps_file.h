// Reads when steps began and ended: CSV with the columns `step`, `begin_s` and `end_s`, and if so
// `host` and `compute_end_s`.
//
//   host,step,begin_s,end_s
//   n1,0,1769860800.000000,1769860800.512345
//
// Times are seconds since 1970, as time.time() of Python and `date +%s.%N` tell them. Rows stand in
// any order; steps of one host may not overlap.
#ifndef STEPCAST_DATA_IO_TRAINING_STEPS_FILE_H_
#define STEPCAST_DATA_IO_TRAINING_STEPS_FILE_H_

#include <string>
#include <vector>

#include "data/record/training_steps.h"

namespace stepcast {

// Hosts in the order in which the file first names them. Throws InputError, which names the line.
std::vector<HostSteps> ReadTrainingSteps(const std::string& path);
std::vector<HostSteps> ParseTrainingSteps(const std::string& text, const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_TRAINING_STEPS_FILE_H_

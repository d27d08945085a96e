// Reads the throughput traces of AdaptDL (Pollux, OSDI 2021) as runs.
//
// Two shapes of file: APP_placements.csv with placement, local_bsz, step_time, sync_time, where a
// placement has one digit a node; and APP_scalability.csv with num_nodes, num_replicas, local_bsz,
// step_time, sync_time, where the layout within the nodes is not recorded and is taken as the most
// even one (said in the `source` column). sync_time is the exposed part of the synchronisation.
#ifndef STEPCAST_DATA_IO_IMPORT_ADAPTDL_H_
#define STEPCAST_DATA_IO_IMPORT_ADAPTDL_H_

#include <string>
#include <vector>

#include "data/record/run.h"

namespace stepcast {

// The traces' application that a file is named after ("bert_placements.csv" and
// "bert/placements.csv" -> "bert"), and the
// catalogue workload that it trained; an application that is not one of the traces' own keeps its
// name, for a workload file to describe.
std::string AdaptdlApplication(const std::string& path);
std::string AdaptdlWorkload(const std::string& application);

// The runs of one file. `workload` replaces the name found by AdaptdlWorkload when not empty;
// `device` is what the trace was measured on.
std::vector<Run> ImportAdaptdl(const std::string& path, const std::string& workload,
                               const std::string& device);

}  // namespace stepcast

#endif  // STEPCAST_DATA_IO_IMPORT_ADAPTDL_H_

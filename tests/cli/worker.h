// The programs of workers that lie beside the program under test, of which a build may lack some.
#ifndef STEPCAST_TESTS_CLI_WORKER_H_
#define STEPCAST_TESTS_CLI_WORKER_H_

#include <unistd.h>

#include <string>

namespace stepcast::program {

inline bool HasWorker(const std::string& name) {
  const std::string program = STEPCAST_PROGRAM;
  const std::string beside = program.substr(0, program.rfind('/')) + "/../lib/stepcast/" + name;
  return access(beside.c_str(), X_OK) == 0;
}

}  // namespace stepcast::program

#endif  // STEPCAST_TESTS_CLI_WORKER_H_

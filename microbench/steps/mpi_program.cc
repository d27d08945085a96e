// stepcast-mpi: one worker whose gradients MPI adds up. A program of its own, and the process that
// stands for its rank in the launcher's job: the host that starts it leaves MPI alone. MPI starts
// once in a job, so that it takes one work after the other.
#include <fmt/format.h>
#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "microbench/steps/program.h"

#ifndef OPEN_MPI
#error "The variables that keep MPI to one interface are Open MPI's."
#endif

namespace stepcast::steps {
namespace {

using network::Address;
using network::LineSocket;
using network::NetworkError;

void Require(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  std::string text(MPI_MAX_ERROR_STRING, '\0');
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  text.resize(static_cast<std::size_t>(length));
  throw NetworkError(fmt::format("{} failed: {}", what, text));
}

// TCP on that interface between hosts, and memory within one, whatever faster network there is:
// what was asked for is how long messages take on it.
void KeepTo(const std::string& interface) {
#if OMPI_MAJOR_VERSION >= 5
  const char* const transports = "self,sm,tcp";
#else
  const char* const transports = "self,vader,tcp";
#endif
  for (const auto& [name, value] : {std::pair<const char*, const char*>("pml", "ob1"),
                                    {"btl", transports},
                                    {"btl_tcp_if_include", interface.c_str()},
                                    {"coll_hcoll_enable", "0"},
                                    {"coll_ucc_enable", "0"}}) {
    setenv((std::string("OMPI_MCA_") + name).c_str(), value, 1);
  }
  // The two exclude each other.
  unsetenv("OMPI_MCA_btl_tcp_if_exclude");
}

// With the first work; the launcher's variables are those of the host's own process.
void Start(const Address& own) {
  int started = 0;
  MPI_Initialized(&started);
  if (started != 0) return;
  const std::string interface = network::InterfaceOf(own);
  if (interface.empty()) throw NetworkError("no interface here has " + own.host());
  KeepTo(interface);
  Require(MPI_Init(nullptr, nullptr), "MPI_Init");
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
}

void RequirePlace(int worker, int workers) {
  int rank = 0;
  int size = 0;
  Require(MPI_Comm_rank(MPI_COMM_WORLD, &rank), "MPI_Comm_rank");
  Require(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (rank == worker && size == workers) return;
  throw NetworkError(fmt::format(
      "MPI has it as rank {} of {}, and the probe as {} of {}: one mpirun, or srun --mpi=pmix, has "
      "to start all hosts and give them their ranks",
      rank, size, worker, workers));
}

class Summed : public AllReduce {
 public:
  using AllReduce::AllReduce;

 private:
  void AddUp(std::size_t /*k*/, float* numbers, std::size_t size) override {
    Require(MPI_Allreduce(MPI_IN_PLACE, numbers, static_cast<int>(size), MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD),
            "MPI_Allreduce");
  }
};

void AddUpWithOthers(const Work& work, const std::vector<Address>& hosts, LineSocket* line) {
  for (const GradientBucket& bucket : work.training.buckets) {
    if (bucket.floats > kMostFloatsOfMpi) throw NetworkError("sent more than MPI takes at once");
  }
  const int worker = work.worker();
  Start(hosts.at(static_cast<std::size_t>(worker)));
  RequirePlace(worker, static_cast<int>(hosts.size()));
  Summed summed(work.training);
  Train(work.training, &summed, line);
}

}  // namespace
}  // namespace stepcast::steps

int main() {
  stepcast::steps::RunProgramToTheEnd(stepcast::steps::AddUpWithOthers);
  int started = 0;
  MPI_Initialized(&started);
  // The launcher takes a rank that ends without it for one that has failed, and ends the others.
  if (started != 0) MPI_Finalize();
  return 0;
}

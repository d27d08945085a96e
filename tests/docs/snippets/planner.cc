// Shares a cluster among jobs: as much goodput for each as the others can spare.
#include <stepcast/data/io/machines.h>
#include <stepcast/data/workloads/catalog.h>
#include <stepcast/predictor/compiled_plan.h>
#include <stepcast/predictor/search/allocations.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <limits>
#include <string>
#include <vector>

namespace {

struct Job {
  std::string workload;
  double noise_scale;  // [samples], as the job measures it
  int initial_batch;   // for which its learning rate is known
  int most_batch;
};

// The best batch of a job on 1, 2, ... devices, nodes filled one after another.
std::vector<stepcast::BatchChoice> Choices(const stepcast::Cluster& cluster,
                                           const stepcast::Device& device, const Job& job) {
  const stepcast::Predictor predictor(cluster, stepcast::FindWorkload(job.workload).value(),
                                      device);
  const stepcast::CompiledPlan compiled(predictor, stepcast::Plan());
  const int each = cluster.devices_per_node;
  std::vector<stepcast::Allocation> allocations;
  for (int devices = 1; devices <= cluster.nodes * each; ++devices) {
    allocations.push_back({devices, (devices + each - 1) / each, devices < each ? devices : each});
  }
  stepcast::BatchSearch search;
  search.candidates = 50;
  search.least_global_batch = job.initial_batch;
  search.most_global_batch = job.most_batch;
  search.noise_scale = job.noise_scale;
  search.initial_batch = job.initial_batch;
  std::vector<stepcast::BatchChoice> choices(allocations.size());
  stepcast::ChooseBatches(compiled, allocations.data(), allocations.size(), search, choices.data());
  return choices;
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string folder = argc > 1 ? argv[1] : "data/machines";
  const stepcast::Cluster cluster = stepcast::ReadCluster(folder + "/gce-t4.yaml");
  const stepcast::Device device =
      stepcast::FindDevice(stepcast::ReadDevices(folder + "/gpus.yaml"), cluster.device).value();
  const std::vector<Job> jobs = {
      {"resnet50", 8000, 256, 8192}, {"vgg16", 8000, 256, 8192}, {"bert_base", 300, 32, 1024}};

  std::vector<std::vector<stepcast::BatchChoice>> choices;
  for (const Job& job : jobs) choices.push_back(Choices(cluster, device, job));

  // The fairest plan has the largest product of goodputs: best[d] is its logarithm for the jobs so
  // far on d devices, and taken[job][d] what the last of them then gets.
  const auto devices = choices.front().size();
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::vector<double> best(devices + 1, kNone);
  best[0] = 0;
  std::vector<std::vector<std::size_t>> taken;
  for (const auto& of_job : choices) {
    std::vector<double> next(devices + 1, kNone);
    taken.emplace_back(devices + 1, 0);
    for (std::size_t total = 1; total <= devices; ++total) {
      for (std::size_t own = 1; own <= total; ++own) {
        const double sum = best[total - own] + std::log(of_job[own - 1].goodput);
        if (sum > next[total]) {
          next[total] = sum;
          taken.back()[total] = own;
        }
      }
    }
    best = next;
  }

  std::size_t left = 1;
  for (std::size_t total = 1; total <= devices; ++total) {
    if (best[total] > best[left]) left = total;
  }
  for (std::size_t j = jobs.size(); j-- > 0;) {
    const std::size_t own = taken[j][left];
    const stepcast::BatchChoice& choice = choices[j][own - 1];
    std::printf("%-10s %2zu devices, batch %d x %d: %.3g samples/s, worth %.3g\n",
                jobs[j].workload.c_str(), own, choice.local_batch, choice.accumulation_steps,
                choice.throughput, choice.goodput);
    left -= own;
  }
} catch (const std::exception& error) {
  std::fprintf(stderr, "planner: %s\n", error.what());
  return 1;
}

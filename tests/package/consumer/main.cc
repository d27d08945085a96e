// A program of another project that forecasts: from records of its own, without files.
#include <stepcast/data/workloads/catalog.h>
#include <stepcast/predictor/predictor.h>

#include <cstdio>
#include <exception>

int main() try {
  stepcast::Device device;
  device.name = "own";
  device.fp32 = stepcast::TeraflopPerSecond(8.0);
  device.memory_bandwidth = stepcast::GigabytesPerSecond(320.0);
  stepcast::Cluster cluster;
  cluster.device = device.name;
  cluster.nodes = 2;
  cluster.link.bandwidth = stepcast::GigabitsPerSecond(10.0);
  const stepcast::Predictor predictor(cluster, stepcast::FindWorkload("resnet50").value(), device);
  stepcast::Plan plan;
  plan.placement = {1, 1};
  plan.local_batch = 32;
  const double step = predictor.Predict(plan).step_time.in(stepcast::kSeconds);
  std::printf("a step takes %.3f s\n", step);
  return step > 0.01 && step < 10 ? 0 : 1;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

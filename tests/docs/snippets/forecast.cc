// forecast CLUSTER.yaml: ResNet-50 on tupi1 and tupi2, with 1 to 64 micro-steps accumulated.
#include <stepcast/data/io/machines.h>
#include <stepcast/data/workloads/catalog.h>
#include <stepcast/predictor/predictor.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const stepcast::Predictor predictor(stepcast::ReadCluster(argv[1]),
                                      stepcast::FindWorkload("resnet50").value(), std::nullopt);
  stepcast::Plan plan;
  plan.placement = {1, 1};  // one device on each of two nodes
  plan.hosts = {"tupi1", "tupi2"};
  plan.local_batch = 128;
  for (plan.accumulation_steps = 1; plan.accumulation_steps <= 64; plan.accumulation_steps *= 4) {
    const stepcast::Prediction p = predictor.Predict(plan);
    std::printf("%2d micro-steps: %5.2f s, %4.0f samples/s\n", plan.accumulation_steps,
                p.step_time.in(stepcast::kSeconds), p.throughput.in(stepcast::kSamplesPerSecond));
  }
}

// A program of another project that links stepcast.
#include <stepcast/data/workloads/catalog.h>

#include <cstdio>

int main() {
  const auto workload = stepcast::FindWorkload("resnet50");
  if (!workload) return 1;
  std::printf("resnet50 has %.0f parameters\n", static_cast<double>(workload->parameters));
  return workload->parameters > 25e6 && workload->parameters < 26e6 ? 0 : 1;
}

// Learns from a measured step, and goes on from a record of what was learnt.
#include <stepcast/calibrate/online/online_calibration.h>
#include <stepcast/data/workloads/catalog.h>

int main() {
  stepcast::Device device;
  device.name = "own";
  device.fp32 = stepcast::TeraflopPerSecond(8.0);
  device.memory_bandwidth = stepcast::GigabytesPerSecond(320.0);
  stepcast::Cluster cluster;
  cluster.device = device.name;
  cluster.nodes = 2;
  cluster.link.bandwidth = stepcast::GigabitsPerSecond(10.0);
  const stepcast::Workload workload = stepcast::FindWorkload("resnet50").value();
  stepcast::OnlineCalibration job(cluster, workload, device);
  stepcast::Plan plan;
  plan.placement = {1, 1};
  plan.local_batch = 32;
  job.Observe(plan, stepcast::Seconds(0.3));
  stepcast::OnlineCalibration other(cluster, workload, device);
  other.Import(job.Export());
  return other.rows() == 1 && other.cluster().calibration ? 0 : 1;
}

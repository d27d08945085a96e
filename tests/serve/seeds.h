// Good requests, from which mutations and the fuzzer start.
#ifndef STEPCAST_TESTS_SERVE_SEEDS_H_
#define STEPCAST_TESTS_SERVE_SEEDS_H_

#include <string>
#include <vector>

#include "predictor/serve/binary.h"

namespace stepcast::serve {

struct Seed {
  const char* method;
  std::string path;
  std::string body;
  const char* type = "application/json";
};

inline std::string ColumnsSeed() {
  BinaryWriter writer(
      R"({"cluster":"gce-t4","workload":"resnet50","size":3,"columns":"workers,local_batch,rtt_ms"})",
      64);
  writer.Add(std::vector<int>{1, 4, 16});
  writer.Add(std::vector<int>{8, 16, 32});
  writer.Add(std::vector<double>{0, 1, 2.5});
  return writer.Take();
}

inline std::vector<Seed> Seeds() {
  return {
      {"POST", "/v1/predict",
       R"({"cluster":"gce-t4","workload":"resnet50","workers":8,"local_batch":32})"},
      {"POST", "/v1/predict",
       R"({"cluster":"ec2-g3-ps","workload":"vgg16","placement":"1-1","local_batch":16,)"
       R"("strategy":"ps-sync","servers":2,"colocated_servers":true,"sharding":"even",)"
       R"("link_gbit_per_s":3.5,"rtt_ms":1,"loss_rate":0.001,"congestion_control":"bbr",)"
       R"("bucket_mib":4,"accumulation_steps":2})"},
      {"POST", "/v1/predict",
       R"({"cluster":"gce-t4","workload":"bert_base","hosts":"a+b","local_batch":4,)"
       R"("strategy":"auto","overlap":"p-norm","backup_workers":1})"},
      {"POST", "/v1/predict_batch",
       R"({"cluster":"gce-t4","workload":"resnet50","plan":{"strategy":"ring"},)"
       R"("queries":{"workers":[1,2,3],"local_batch":[8,16,32],"link_gbit_per_s":[1,null,10]}})"},
      {"POST", "/v1/predict_batch",
       R"({"cluster":"ec2-g3-ps","workload":"inception_v3","interval":false,)"
       R"("plan":{"strategy":"ps-async","local_batch":8},)"
       R"("queries":{"workers":[4,4],"nodes":[2,4],"devices_per_node":[2,1],"servers":[1,0]}})"},
      {"POST", "/v1/predict_batch", ColumnsSeed(), "application/octet-stream"},
      {"POST", "/v1/recommend",
       R"({"cluster":"gce-t4","workload":"resnet50","allocations":{"workers":[1,4,16]},)"
       R"("search":{"most_global_batch":512,"candidates":5,"noise_scale":1000,)"
       R"("initial_batch":32,"accumulate":false}})"},
      {"POST", "/v1/observe",
       R"({"job":"a","cluster":"gce-t4","workload":"resnet50",)"
       R"("plan":{"workers":8,"local_batch":32,"strategy":"ring"},"step_times_s":[0.3,0.31]})"},
      {"POST", "/v1/observe",
       R"({"job":"b","cluster":"ec2-g3-ps","workload":"mine","parameters":25000000,)"
       R"("plan":{"workers":2,"local_batch":16,"strategy":"ps-sync","servers":1},)"
       R"("step_times_s":[0.5]})"},
      {"POST", "/v1/predict", R"({"job":"a","workers":16,"local_batch":32})"},
      {"POST", "/v1/end_job", R"({"job":"a","forget":true})"},
      {"GET", "/v1/jobs", ""},
      {"POST", "/v1/reload", ""},
      {"GET", "/metrics", ""},
      {"GET", "/v1/clusters", ""},
  };
}

}  // namespace stepcast::serve

#endif  // STEPCAST_TESTS_SERVE_SEEDS_H_

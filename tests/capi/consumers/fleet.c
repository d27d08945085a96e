// fleet CLUSTER.yaml DEVICES.yaml: ResNet-50 on 1 to 4 nodes, and the best batch for each.
#include <stdio.h>
#include <stdlib.h>
#include <stepcast.h>

#define COUNT 4

// Where functions put the text of what went wrong.
static char* error = NULL;

static void check(stepcast_status status) {
  if (status == STEPCAST_OK) return;
  fprintf(stderr, "fleet: %s\n", error != NULL ? error : stepcast_status_text(status));
  stepcast_text_free(error);
  exit(1);
}

int main(int argc, char** argv) {
  stepcast_cluster* cluster = NULL;
  stepcast_device* device = NULL;
  stepcast_workload* workload = NULL;
  stepcast_predictor* predictor = NULL;
  stepcast_plan* plan = NULL;
  stepcast_compiled* compiled = NULL;
  stepcast_cluster_info info = {.struct_size = sizeof info};
  if (argc != 3) return 2;

  // Once for a cluster and a workload.
  check(stepcast_cluster_read(argv[1], &cluster, &error));
  check(stepcast_cluster_get_info(cluster, &info));
  check(stepcast_device_read(argv[2], info.device, &device, &error));
  check(stepcast_workload_find("resnet50", &workload, &error));
  check(stepcast_predictor_create(cluster, workload, device, &predictor, &error));

  // Once for a kind of plan.
  check(stepcast_plan_create(&plan, &error));
  check(stepcast_plan_set_text(plan, "strategy", "ring", &error));
  check(stepcast_plan_set_number(plan, "local_batch", 128, &error));
  check(stepcast_compiled_create(predictor, plan, NULL, &compiled, &error));

  // As often as there is something to ask: the steps of all, in one call.
  const int32_t nodes[COUNT] = {1, 2, 3, 4};
  double step_time_s[COUNT], low_s[COUNT], high_s[COUNT];
  stepcast_query_arrays queries = {.struct_size = sizeof queries};
  queries.count = COUNT;
  queries.workers = queries.nodes = nodes;  // one device each; all else is the plan's
  stepcast_forecast_arrays answers = {.struct_size = sizeof answers};
  answers.step_time_s = step_time_s;
  answers.low_s = low_s;
  answers.high_s = high_s;
  check(stepcast_compiled_predict_many(compiled, &queries, &answers, NULL));
  printf("resnet50 on %s, %s, local batch 128\n", info.name, stepcast_compiled_strategy(compiled));
  printf("nodes  step [s]   from     to\n");
  for (int i = 0; i < COUNT; ++i) {
    printf("%5d  %8.3f  %5.3f  %5.3f\n", nodes[i], step_time_s[i], low_s[i], high_s[i]);
  }

  // And the best batches, where a sample counts for what it is worth.
  int32_t local_batch[COUNT], accumulation_steps[COUNT];
  double goodput[COUNT];
  stepcast_allocation_arrays allocations = {.struct_size = sizeof allocations};
  allocations.count = COUNT;
  allocations.workers = allocations.nodes = nodes;
  stepcast_batch_search search = {.struct_size = sizeof search};
  check(stepcast_batch_search_init(&search));
  search.least_global_batch = 128;
  search.most_global_batch = 8192;
  search.noise_scale_samples = 4000;
  search.initial_batch_samples = 128;
  stepcast_batch_choice_arrays choices = {.struct_size = sizeof choices};
  choices.local_batch = local_batch;
  choices.accumulation_steps = accumulation_steps;
  choices.goodput_samples_per_s = goodput;
  check(stepcast_compiled_choose_batches(compiled, &allocations, &search, &choices, NULL));
  printf("nodes  local batch  micro-steps  goodput [samples/s]\n");
  for (int i = 0; i < COUNT; ++i) {
    printf("%5d  %11d  %11d  %19.1f\n", nodes[i], local_batch[i], accumulation_steps[i],
           goodput[i]);
  }

  stepcast_compiled_free(compiled);
  stepcast_plan_free(plan);
  stepcast_predictor_free(predictor);
  stepcast_workload_free(workload);
  stepcast_device_free(device);
  stepcast_cluster_free(cluster);
  return 0;
}

// The C interface of stepcast: what a scheduler in C, Go, Rust or anything that can call C links.
//
//   stepcast_cluster* cluster;      // who and where: files, names, counts
//   stepcast_workload* workload;
//   stepcast_predictor* predictor;  // made of the two, and of a device's data sheet
//   stepcast_plan* plan;            // how a job is spread; its fields are those of the runs CSV
//   stepcast_compiled* compiled;    // one kind of plan, to be asked millions of times
//
//   stepcast_query query = {.struct_size = sizeof query};
//   stepcast_forecast forecast = {.struct_size = sizeof forecast};
//   stepcast_compiled_get_query(compiled, &query);     // the plan itself
//   query.workers = 16; query.nodes = 4; query.devices_per_node = 4;
//   if (stepcast_compiled_predict(compiled, &query, &forecast) == STEPCAST_OK) {
//     forecast.step_time_s ...
//   }
//
// Handles. X_create, X_read and their like make a handle and X_free ends it; to free NULL does
// nothing. A handle needs no other one: a cluster may be freed as soon as its predictor was made.
//
// Threads. Functions of a const handle may be called from many threads at once, on one handle, and
// need no lock. A plan, an online calibration and a fleet are changed by functions that take them
// without const: one thread at a time, and no other asks meanwhile. A fleet and the calibrations of
// its jobs count as one handle here. There is no global state.
//
// Status. Who can fail returns a status. A pointer that is NULL is STEPCAST_BAD_ARGUMENT unless the
// function says what NULL means; what was to be filled is left as it was, and a handle or text that
// was to be made is NULL. No C++ exception leaves a function. `error`, where a function has it and
// it is not NULL, receives a sentence that names the file, the key and what is allowed, to be freed
// with stepcast_text_free; NULL where there is none.
//
// Structs. Each begins with struct_size, which the caller sets to the size that it was compiled
// with. Structs grow at their end: an older, shorter one is served as before; one that is longer
// than this library knows is taken as long as what is beyond is zero.
//
// Values. Units are in the names, numbers are SI. A double that is not a number stands for "not
// known" or "not stated". Text is UTF-8 and ends with a zero. A const char* belongs to the handle
// that gave it, or to the library; a char* is the caller's, for stepcast_text_free.
//
// Enumerators have the values that stand here for ever; later libraries may return new ones.
#ifndef STEPCAST_PREDICTOR_CAPI_STEPCAST_H_
#define STEPCAST_PREDICTOR_CAPI_STEPCAST_H_

// NOLINTBEGIN(modernize-*): this is C.
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// ---- Version

// The binary interface of this header. A library with another number has another soname.
enum { STEPCAST_ABI = 0 };

int32_t stepcast_abi(void);          // that of the library in use
const char* stepcast_version(void);  // "0.2.0"
int32_t stepcast_version_major(void);
int32_t stepcast_version_minor(void);
int32_t stepcast_version_patch(void);

// ---- Status and text

typedef int32_t stepcast_status;
enum {
  STEPCAST_OK = 0,
  STEPCAST_BAD_ARGUMENT = 1,    // NULL, or a struct_size that cannot be: a mistake of the program
  STEPCAST_BAD_INPUT = 2,       // a file, a name or a number that a person can mend
  STEPCAST_NOT_FOUND = 3,       // no workload or device of that name
  STEPCAST_NO_ANSWER = 4,       // a query that makes no sense: stepcast_forecast.status says why
  STEPCAST_OUT_OF_MEMORY = 5,   // of this process
  STEPCAST_INTERNAL_ERROR = 6,  // what should not happen
  STEPCAST_NOT_BUILT = 7        // files are asked of a library that has no readers
};
const char* stepcast_status_text(stepcast_status status);  // a few words; never NULL

void stepcast_text_free(char* text);

// ---- Clusters

typedef struct stepcast_cluster stepcast_cluster;

typedef struct stepcast_cluster_info {
  size_t struct_size;
  const char* name;
  const char* device;  // key of its data sheet: "rtx_4090"
  int32_t nodes;
  int32_t devices_per_node;
  int32_t describes_device;  // 1 where the file has the device's data sheet itself
  int32_t calibrated;        // 1 where it has fitted parameters
} stepcast_cluster_info;

// A cluster file, as shipped or as `stepcast calibrate` writes it.
stepcast_status stepcast_cluster_read(const char* path, stepcast_cluster** cluster, char** error);
// The same from the text of such a file; errors call it `name`.
stepcast_status stepcast_cluster_parse(const char* text, const char* name,
                                       stepcast_cluster** cluster, char** error);
// The text of its file; stepcast_cluster_parse gives the cluster back.
stepcast_status stepcast_cluster_format(const stepcast_cluster* cluster, char** text, char** error);
stepcast_status stepcast_cluster_get_info(const stepcast_cluster* cluster,
                                          stepcast_cluster_info* info);
void stepcast_cluster_free(stepcast_cluster* cluster);

// ---- Devices

typedef struct stepcast_device stepcast_device;

// The data sheet that `name` means in a file of devices like the shipped machines/gpus.yaml: by its
// key, title or alias, whatever the case and the separators. STEPCAST_NOT_FOUND if there is none.
stepcast_status stepcast_device_read(const char* path, const char* name, stepcast_device** device,
                                     char** error);
const char* stepcast_device_name(const stepcast_device* device);  // its key; NULL of NULL
void stepcast_device_free(stepcast_device* device);

// ---- Workloads

typedef struct stepcast_workload stepcast_workload;

typedef struct stepcast_workload_info {
  size_t struct_size;
  const char* name;
  const char* title;
  int64_t parameters;
  int64_t trainable_parameters;
  double gradient_bytes;
  int64_t layers;  // 0 where only the totals are known
} stepcast_workload_info;

// A network of the catalogue: "resnet50", or for another size of input "resnet50@160"; or a decoder
// by its numbers: "gpt:layers=24:hidden=2048:heads=16@2048". STEPCAST_NOT_FOUND where there is none
// of that name, STEPCAST_BAD_INPUT where not of that size or of such numbers.
stepcast_status stepcast_workload_find(const char* name, stepcast_workload** workload,
                                       char** error);
// A workload file, or its text, which errors call `name`.
stepcast_status stepcast_workload_read(const char* path, stepcast_workload** workload,
                                       char** error);
stepcast_status stepcast_workload_parse(const char* text, const char* name,
                                        stepcast_workload** workload, char** error);
// One of which only its size is known. Either number may be 0 for "not stated": a parameter has 4
// bytes of gradient. Without layers compute time is what a calibration fitted under this name, or a
// wide prior.
stepcast_status stepcast_workload_from_totals(const char* name, int64_t parameters,
                                              int64_t gradient_bytes, stepcast_workload** workload,
                                              char** error);
stepcast_status stepcast_workload_get_info(const stepcast_workload* workload,
                                           stepcast_workload_info* info);
// How it is trained: "precision" to "fp32", "tf32", "fp16", "bf16" or "fp8", "optimizer" to
// "sgd", "momentum" or "adam" ("adamw" is read as "adam"), "attention" to "plain" or "fused",
// "recompute" to "none", "selective" or "full". Predictors that are made of it afterwards know; a
// fact that is refused is left as it was.
stepcast_status stepcast_workload_set_text(stepcast_workload* workload, const char* fact,
                                           const char* value, char** error);
// As the cluster's calibrated runs of it were, in each fact on which all of them agree. Where it
// has none, as those of all other workloads were, in each fact on which these agree and of which
// the workload itself says nothing: forecasts then say so. Else it stays as it is. What a
// calibration knows holds for one way of training.
stepcast_status stepcast_workload_train_as_fitted(stepcast_workload* workload,
                                                  const stepcast_cluster* cluster, char** error);
// The word of that fact, of static life; NULL where it is none, or of NULL.
const char* stepcast_workload_get_text(const stepcast_workload* workload, const char* fact);
void stepcast_workload_free(stepcast_workload* workload);

// ---- Plans

typedef struct stepcast_plan stepcast_plan;

// One worker with one sample, and otherwise nothing stated.
stepcast_status stepcast_plan_create(stepcast_plan** plan, char** error);
// Sets a field by the name of its column in the runs CSV: "strategy" to "ring", "placement" to
// "4-4-2", "hosts" to "a+b", "pipelined_servers" to "yes". An empty text takes back what was said
// of a field that a plan need not say, as an empty cell does there. What does not go together is
// found when the plan is used. A field that is refused is left as it was.
stepcast_status stepcast_plan_set_text(stepcast_plan* plan, const char* field, const char* value,
                                       char** error);
// The same for a number, whose unit is in the name: "local_batch" to 64, "link_gbit_per_s" to 10,
// "rtt_ms" to 0.2, "loss_rate" to 0.001, "bucket_mib" to 25.
stepcast_status stepcast_plan_set_number(stepcast_plan* plan, const char* field, double value,
                                         char** error);
// Devices used on each of `nodes` nodes.
stepcast_status stepcast_plan_set_placement(stepcast_plan* plan, const int32_t* devices,
                                            size_t nodes, char** error);
// Names of the `nodes` nodes, in the order of the placement; 0 names none. `hosts` is not NULL.
stepcast_status stepcast_plan_set_hosts(stepcast_plan* plan, const char* const* hosts, size_t nodes,
                                        char** error);
void stepcast_plan_free(stepcast_plan* plan);

// What a field of a plan may hold, from the list that all interfaces have in common.
typedef struct stepcast_field_info {
  size_t struct_size;
  const char* name;  // as stepcast_plan_set_text takes it
  const char* meaning;
  const char* kind;  // "count", "number", "choice", "yes or no", "placement", "names", "method"
  const char* unit;  // of a number; empty for a count and a plain number, NULL for what is none
  // The range of a number, in that unit, and of the devices on each node of a placement; not a
  // number for what has none.
  double least;
  double most;
  int32_t or_nought;         // 1 where 0 is allowed beside the range
  int32_t below_most;        // 1 where `most` itself is too much
  size_t words_count;        // of `words`; 0 for what is no choice
  const char* const* words;  // that a choice is one of
} stepcast_field_info;

// The names of all fields, in the order of the list: `count` strings of the library.
const char* const* stepcast_plan_fields(size_t* count);
// STEPCAST_NOT_FOUND where no field has this name.
stepcast_status stepcast_plan_get_field(const char* name, stepcast_field_info* info);

// ---- Predictions

typedef struct stepcast_predictor stepcast_predictor;
typedef struct stepcast_prediction stepcast_prediction;

// What holds a synchronisation back.
enum {
  STEPCAST_LIMITER_NOTHING = 0,  // there is no synchronisation
  STEPCAST_LIMITER_LINK = 1,
  STEPCAST_LIMITER_FLOW = 2,    // what the flows to one peer carry
  STEPCAST_LIMITER_WINDOW = 3,  // bytes in flight per round trip
  STEPCAST_LIMITER_LOSS = 4,
  STEPCAST_LIMITER_HOST = 5,  // the exchange within the node, or from a device to its card
  STEPCAST_LIMITER_SERVER_LINK = 6,
  STEPCAST_LIMITER_SERVER = 7,  // the servers' processors
  STEPCAST_LIMITER_LATENCY = 8,
  STEPCAST_LIMITER_CORE = 9  // the uplinks of the switches between the nodes
};

// Whether the device's memory holds the step.
enum {
  STEPCAST_MEMORY_FITS = 0,
  STEPCAST_MEMORY_TIGHT = 1,
  STEPCAST_MEMORY_EXCEEDED = 2,
  STEPCAST_MEMORY_UNKNOWN = 3
};

// Where the compute time comes from.
enum {
  STEPCAST_COMPUTE_FITTED = 0,  // runs of the workload on the device
  STEPCAST_COMPUTE_PROFILE = 1,
  STEPCAST_COMPUTE_DATA_SHEET = 2,
  STEPCAST_COMPUTE_FROM_DEVICE = 3,         // runs of other workloads on the device
  STEPCAST_COMPUTE_FROM_OTHER_DEVICE = 4,   // runs of the workload on another device
  STEPCAST_COMPUTE_NONE = 5,                // a bare message
  STEPCAST_COMPUTE_PRIOR = 6,               // nothing tells
  STEPCAST_COMPUTE_FROM_OTHER_TRAINING = 7  // runs of the workload there, trained otherwise
};

typedef struct stepcast_prediction_values {
  size_t struct_size;
  double step_time_s;
  double low_s;  // to high_s: 90 % prediction interval of one measured step
  double high_s;
  double log_sd;  // of ln(measured / predicted)
  double p50_s;   // quantiles of steps that scatter as expected
  double p95_s;
  double p99_s;
  double throughput_samples_per_s;  // of all workers
  // These six, input_wait_s and coding_s add up to step_time_s.
  double forward_s;
  double backward_s;
  double update_s;
  double exposed_latency_s;
  double exposed_transfer_s;
  double straggler_wait_s;
  double synchronisation_s;       // whole, hidden or not
  double memory_need_bytes;       // of one device
  double memory_available_bytes;  // not a number where no data sheet tells
  const char* strategy;           // what was evaluated: mostly "ring" for "allreduce"
  int32_t limiter;
  int32_t memory_verdict;
  int32_t compute_source;
  int32_t buckets;      // that the gradients are sent in
  double input_wait_s;  // for samples that have not arrived
  double coding_s;      // of gradients that are compressed
} stepcast_prediction_values;

// `device` is what the workload runs on; NULL is the cluster's, with the data sheet of the cluster
// file if there is one. No other file is opened: what a shipped cluster names is read with
// stepcast_device_read, or compute is a prior. Where nothing tells the compute time (no run of the
// workload in the calibration, and no layers or no data sheet) it is a wide prior, and a flag says
// so.
stepcast_status stepcast_predictor_create(const stepcast_cluster* cluster,
                                          const stepcast_workload* workload,
                                          const stepcast_device* device,
                                          stepcast_predictor** predictor, char** error);
void stepcast_predictor_free(stepcast_predictor* predictor);

// One plan in full, in microseconds to milliseconds. STEPCAST_BAD_INPUT if no model covers it.
stepcast_status stepcast_predictor_predict(const stepcast_predictor* predictor,
                                           const stepcast_plan* plan,
                                           stepcast_prediction** prediction, char** error);
stepcast_status stepcast_prediction_get_values(const stepcast_prediction* prediction,
                                               stepcast_prediction_values* values);
// What to know before trusting the numbers, a sentence each: `count` strings that the prediction
// owns; NULL of NULL.
const char* const* stepcast_prediction_flags(const stepcast_prediction* prediction, size_t* count);
void stepcast_prediction_free(stepcast_prediction* prediction);

// Why no shares by speed are better than equal ones.
enum {
  STEPCAST_EQUAL_NOT_BEST = 0,  // shares by speed are
  STEPCAST_EQUAL_ONE_SAMPLE = 1,
  STEPCAST_EQUAL_MEMORY = 2,  // a fast device does not hold more
  STEPCAST_EQUAL_NONE_QUICKER = 3
};

// What it is worth to share a plan's samples out by speed, and to do without its slow nodes. A
// local batch is 0, and a time not a number, where there is no such choice.
typedef struct stepcast_slow_nodes {
  size_t struct_size;
  double equal_step_time_s;     // the plan as it is
  int32_t by_speed_fast_batch;  // samples of a micro-step on a fast device
  int32_t by_speed_slow_batch;  // and on a slow one
  double by_speed_step_time_s;
  int32_t fast_only_batch;  // the slow nodes rest
  int32_t why_equal;
  double fast_only_step_time_s;
} stepcast_slow_nodes;

// Samples of a step stay the plan's, but for rounding up. STEPCAST_NO_ANSWER where no node of the
// plan is slow, where all are, and where nobody waits for them (ps-async); STEPCAST_BAD_INPUT if no
// model covers it.
stepcast_status stepcast_predictor_weigh_slow_nodes(const stepcast_predictor* predictor,
                                                    const stepcast_plan* plan,
                                                    stepcast_slow_nodes* weighed, char** error);

// ---- Compiled plans: no function that asks one allocates, locks or waits, but for threads that
// ---- arrays ask for

typedef struct stepcast_compiled stepcast_compiled;

// Set with stepcast_compile_options_init.
typedef struct stepcast_compile_options {
  size_t struct_size;
  int32_t most_servers;  // that a query may ask for
} stepcast_compile_options;

// Where and with which batch. Nodes that are used unequally are told by the fullest: 10 workers as
// 4-4-2 are workers 10, nodes 3, devices_per_node 4. Links that are stated replace the plan's.
// Set with stepcast_compiled_get_query.
typedef struct stepcast_query {
  size_t struct_size;
  int32_t workers;
  int32_t nodes;             // in use
  int32_t devices_per_node;  // in use, on the fullest node
  int32_t servers;
  int32_t local_batch;
  int32_t accumulation_steps;
  double link_bandwidth_bytes_per_s;  // of a node, each way
  double link_rtt_s;
  double link_loss_rate;
  double server_link_bandwidth_bytes_per_s;
  double server_link_rtt_s;
  double server_link_loss_rate;
  // The last so many compute at the plan's slow_speed; 0: none. Where it has a slow_local_batch
  // their devices take that, local_batch is the others', and one node at least is not slow. Their
  // devices are those of the compiled plan's placement where workers, nodes and devices_per_node
  // are its own; elsewhere nodes are filled from the first.
  int32_t slow_nodes;
} stepcast_query;

// Why a query has no answer.
enum {
  STEPCAST_QUERY_OK = 0,
  STEPCAST_QUERY_BAD_PLACEMENT = 1,  // workers do not fit nodes and devices_per_node, or are none
  STEPCAST_QUERY_BAD_SERVERS = 2,    // too many, or none with a strategy that needs them
  STEPCAST_QUERY_BAD_BATCH = 3,
  STEPCAST_QUERY_BAD_LINK = 4,
  STEPCAST_QUERY_NOTHING_EXCHANGED = 5,  // a bare message between nobody
  STEPCAST_QUERY_BAD_SLOW_NODES = 6      // too many, or the plan says no speed of theirs
};
const char* stepcast_query_status_text(int32_t status);  // a few words; never NULL

// Without an answer the doubles are not a number.
typedef struct stepcast_forecast {
  size_t struct_size;
  double step_time_s;
  double low_s;  // as in stepcast_prediction_values
  double high_s;
  double log_sd;
  int32_t limiter;
  int32_t status;  // STEPCAST_QUERY_OK, or why there is no answer
} stepcast_forecast;

// Many queries as arrays of `count`, element i of each belonging to query i. NULL is the compiled
// plan's own value for all; of the links not a number is "not stated". Some thousands and more are
// shared out among as many threads, the caller's among them; 0 and 1 are the caller's alone. The
// threads end before the call does, and answers do not depend on how many there are.
typedef struct stepcast_query_arrays {
  size_t struct_size;
  size_t count;
  const int32_t* workers;
  const int32_t* nodes;
  const int32_t* devices_per_node;
  const int32_t* servers;
  const int32_t* local_batch;
  const int32_t* accumulation_steps;
  const double* link_bandwidth_bytes_per_s;
  const double* link_rtt_s;
  const double* link_loss_rate;
  const int32_t* slow_nodes;
  size_t threads;
} stepcast_query_arrays;

// Where the answers go; NULL where they are not wanted.
typedef struct stepcast_forecast_arrays {
  size_t struct_size;
  double* step_time_s;
  double* low_s;  // an interval costs time
  double* high_s;
  double* log_sd;
  int32_t* status;
} stepcast_forecast_arrays;

// Allocations of devices that a job could get, as stepcast_query_arrays.
typedef struct stepcast_allocation_arrays {
  size_t struct_size;
  size_t count;
  const int32_t* workers;
  const int32_t* nodes;
  const int32_t* devices_per_node;
  const int32_t* servers;
  const int32_t* slow_nodes;
} stepcast_allocation_arrays;

// Which batches to try. Set with stepcast_batch_search_init.
typedef struct stepcast_batch_search {
  size_t struct_size;
  int32_t least_global_batch;
  int32_t most_global_batch;
  int32_t least_local_batch;
  int32_t most_local_batch;  // 0: what the device's memory holds
  int32_t accumulate;        // 1: micro-steps may be more than one; 0: they may not
  int32_t candidates;        // global batches tried for an allocation; 0: those of the program
  // Both, and the best has the highest goodput. With neither the smallest global batch within 5 %
  // of the highest throughput is best, unless the compiled plan's own batch is better.
  double noise_scale_samples;
  double initial_batch_samples;
} stepcast_batch_search;

// The best batch of each allocation; NULL where it is not wanted. local_batch is 0 where no
// candidate fits, and that of the other nodes' devices where slow ones take a slow_local_batch.
typedef struct stepcast_batch_choice_arrays {
  size_t struct_size;
  int32_t* local_batch;
  int32_t* accumulation_steps;
  double* step_time_s;
  double* throughput_samples_per_s;
  double* statistical_efficiency;  // what a sample is worth, 1 at the initial batch
  double* goodput_samples_per_s;   // throughput x statistical efficiency
} stepcast_batch_choice_arrays;

stepcast_status stepcast_compile_options_init(stepcast_compile_options* options);
// `plan` is one that the predictor would answer; "auto" becomes the best algorithm for it. NULL
// options are those of stepcast_compile_options_init.
stepcast_status stepcast_compiled_create(const stepcast_predictor* predictor,
                                         const stepcast_plan* plan,
                                         const stepcast_compile_options* options,
                                         stepcast_compiled** compiled, char** error);
const char* stepcast_compiled_strategy(const stepcast_compiled* compiled);  // NULL of NULL
void stepcast_compiled_free(stepcast_compiled* compiled);

// The query that asks for the plan itself, with no link stated.
stepcast_status stepcast_compiled_get_query(const stepcast_compiled* compiled,
                                            stepcast_query* query);
// Sets workers, nodes and devices_per_node to those of a placement: devices used on each of `nodes`
// nodes. What a query says of nodes that are used unequally is the fullest of them.
stepcast_status stepcast_query_set_placement(stepcast_query* query, const int32_t* devices,
                                             size_t nodes, char** error);
// Step time and interval. STEPCAST_NO_ANSWER where forecast->status says why.
stepcast_status stepcast_compiled_predict(const stepcast_compiled* compiled,
                                          const stepcast_query* query, stepcast_forecast* forecast);
// Why a query has no answer: STEPCAST_NO_ANSWER, with a sentence that names the field, its value
// and what is allowed. It makes a text, so that it is for the few that have none.
stepcast_status stepcast_compiled_check(const stepcast_compiled* compiled,
                                        const stepcast_query* query, char** error);
// The same of the first query of the arrays that has no answer, by its index: "local_batch[7]: '0'
// is out of range; allowed: ...". Nothing is forecast, which takes so little time that the caller's
// thread looks at all, whatever `threads` says.
stepcast_status stepcast_compiled_check_many(const stepcast_compiled* compiled,
                                             const stepcast_query_arrays* queries, char** error);
// The step time alone, at about half the cost; not a number where there is none.
double stepcast_compiled_step_time_s(const stepcast_compiled* compiled,
                                     const stepcast_query* query);
// `unanswered`, if not NULL, receives how many queries had no answer; they are no error.
stepcast_status stepcast_compiled_predict_many(const stepcast_compiled* compiled,
                                               const stepcast_query_arrays* queries,
                                               const stepcast_forecast_arrays* answers,
                                               size_t* unanswered);
// The largest local batch that the device's memory holds for workers and accumulation_steps of the
// query: 0 where not even one sample fits, 100000000 where nothing tells, -1 for a bad argument.
int32_t stepcast_compiled_most_local_batch(const stepcast_compiled* compiled,
                                           const stepcast_query* query);

stepcast_status stepcast_batch_search_init(stepcast_batch_search* search);
// The best batch for every allocation. `unanswered` as above. STEPCAST_BAD_INPUT for a search with
// a batch below 1 (the initial one, too), candidates or a noise scale below 0, and for a noise
// scale without an initial batch or the other way round, or either beyond 1e15.
stepcast_status stepcast_compiled_choose_batches(const stepcast_compiled* compiled,
                                                 const stepcast_allocation_arrays* allocations,
                                                 const stepcast_batch_search* search,
                                                 const stepcast_batch_choice_arrays* choices,
                                                 size_t* unanswered);

// ---- Online calibration: parameters that follow a job while it runs

typedef struct stepcast_online stepcast_online;

// The answer to one observed step.
typedef struct stepcast_observation {
  size_t struct_size;
  double predicted_s;  // before the step was learnt
  double log_ratio;    // ln(measured / predicted)
  double surprise;     // log_ratio in standard deviations of what was expected
  int32_t drifted;     // as stepcast_online_drifted
  int32_t rows;        // observed so far, with this one
} stepcast_observation;

// `device` as for stepcast_predictor_create.
stepcast_status stepcast_online_create(const stepcast_cluster* cluster,
                                       const stepcast_workload* workload,
                                       const stepcast_device* device, stepcast_online** online,
                                       char** error);
void stepcast_online_free(stepcast_online* online);
// Learns a measured step of `plan`, whose strategy is not "auto". Nothing is learnt of one that is
// refused. `observation` may be NULL.
stepcast_status stepcast_online_observe(stepcast_online* online, const stepcast_plan* plan,
                                        double step_time_s, stepcast_observation* observation,
                                        char** error);
// A step of `plan` did not fit in the device's memory: plans that need no less are out of memory
// for predictors that are made from now on. STEPCAST_BAD_INPUT where nobody states that memory.
stepcast_status stepcast_online_observe_out_of_memory(stepcast_online* online,
                                                      const stepcast_plan* plan, char** error);
int32_t stepcast_online_rows(const stepcast_online* online);  // observed so far; -1 of NULL
// 1 where recent steps lie apart from the older ones by more than chance allows; -1 of NULL.
int32_t stepcast_online_drifted(const stepcast_online* online);
// What the step that this handle has observed last has shown to have changed: "compute",
// "network", "node", or several joined by " or " where steps do not tell. NULL where it has shown
// nothing, and of NULL. It holds until the handle observes again, or imports.
const char* stepcast_online_cause(const stepcast_online* online);
// The cluster with the parameters as learnt, for a new predictor or stepcast_cluster_format.
stepcast_status stepcast_online_cluster(const stepcast_online* online, stepcast_cluster** cluster,
                                        char** error);
// A predictor with the parameters as learnt, of the calibration's own workload and device.
stepcast_status stepcast_online_predictor(const stepcast_online* online,
                                          stepcast_predictor** predictor, char** error);
// All that was learnt as JSON text, and back into a calibration of the same cluster, workload and
// device.
stepcast_status stepcast_online_export(const stepcast_online* online, char** text, char** error);
stepcast_status stepcast_online_import(stepcast_online* online, const char* text, char** error);

// ---- Fleets: one calibration of a cluster that all its jobs share

// What some jobs have learnt, the next begin with. Each has a name, which is any text that is not
// empty, of at most 1000 bytes.
typedef struct stepcast_fleet stepcast_fleet;

stepcast_status stepcast_fleet_create(const stepcast_cluster* cluster, stepcast_fleet** fleet,
                                      char** error);
// Handles of its jobs outlive it.
void stepcast_fleet_free(stepcast_fleet* fleet);
// A new job, which begins with what the others have learnt; `device` as for
// stepcast_predictor_create. `online` is its calibration: stepcast_online_observe teaches the fleet
// too. STEPCAST_BAD_INPUT for a name that is running, and for a workload that has the name of
// another job's, is trained as it is, and has other gradients.
stepcast_status stepcast_fleet_add(stepcast_fleet* fleet, const char* job,
                                   const stepcast_workload* workload, const stepcast_device* device,
                                   stepcast_online** online, char** error);
// The same calibration of a job that is running, by another handle. STEPCAST_NOT_FOUND where none
// of that name is, as for the two below.
stepcast_status stepcast_fleet_job(const stepcast_fleet* fleet, const char* job,
                                   stepcast_online** online, char** error);
// The job is over: what it has taught is kept. Handles of it go on by themselves.
stepcast_status stepcast_fleet_end(stepcast_fleet* fleet, const char* job, char** error);
// What the job has taught is forgotten, but by those that began with it.
stepcast_status stepcast_fleet_remove(stepcast_fleet* fleet, const char* job, char** error);
// Names of the jobs that are running, in the order of their bytes: `count` strings that the fleet
// owns, until a function changes it that takes it without const; NULL of NULL.
const char* const* stepcast_fleet_jobs(const stepcast_fleet* fleet, size_t* count);
// The cluster as a new job of this workload would begin with it, for a predictor of one that waits.
stepcast_status stepcast_fleet_cluster(const stepcast_fleet* fleet,
                                       const stepcast_workload* workload,
                                       const stepcast_device* device, stepcast_cluster** cluster,
                                       char** error);
// All that was learnt as JSON text, with the jobs that are running; and back into a fleet of the
// same cluster, whose jobs are those of the text then. Handles of those before go on by themselves.
stepcast_status stepcast_fleet_export(const stepcast_fleet* fleet, char** text, char** error);
stepcast_status stepcast_fleet_import(stepcast_fleet* fleet, const char* text, char** error);

#ifdef __cplusplus
}
#endif
// NOLINTEND(modernize-*)

#endif  // STEPCAST_PREDICTOR_CAPI_STEPCAST_H_

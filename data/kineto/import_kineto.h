// Reads a trace of training steps by PyTorch's profiler (Kineto; what export_chrome_trace() of
// torch.profiler.profile(record_shapes=True) writes) as a profile of the layers' times.
//
// A layer is the outermost operator that computes one (conv2d, not the convolution within it). Its
// forward time is the call's own: on a GPU the kernels launched within it, on a CPU its duration,
// without the conversions of automatic mixed precision. Its backward time is that of the nodes of
// the autograd graph that its operators made, found by PyTorch's sequence numbers. A sum's backward
// is the addition of gradients where branches meet. The update is what happens within
// Optimizer.step(). What is called without a gradient (evaluation, averages of parameters) is no
// training and counts as unattributed, as do losses, dropout, collectives and the accumulation of
// gradients.
//
// Each call that took time is a sample, and none is dropped: a trace whose schedule had no warm-up
// begins with slow ones, which medians ignore. Precision is the type of the tensors; tf32 is told
// by names of kernels alone.
//
// PyTorch before 2.1 does not write numbers among the arguments: strides and zeros of convolutions
// are then derived from the shape of their output, with dilation taken as one, and pooling with a
// window stays unattributed.
#ifndef STEPCAST_DATA_KINETO_IMPORT_KINETO_H_
#define STEPCAST_DATA_KINETO_IMPORT_KINETO_H_

#include <map>
#include <string>
#include <vector>

#include "data/record/compute_profile.h"

namespace stepcast {

// Everything that a GPU did under one name: kernels, and copies and fills of memory.
struct KernelTime {
  std::string name;
  int calls = 0;
  double total_s = 0;
  double mean_s = 0;
};

struct KinetoSummary {
  int steps = 0;           // ProfilerStep#N that train; optimizer steps where none is marked
  double step_time_s = 0;  // median of the marked steps; 0 where none is
  // Share of the time from the first step to the end of the last in which the GPU worked; 0 without
  // a GPU.
  double device_busy_share = 0;
  // Time of the whole trace that is no layer's, by the operator's name; behind a colon why a layer
  // could not be told.
  std::map<std::string, double> unattributed_s;
  std::vector<KernelTime> kernels;  // longest total first; empty without a GPU
};

struct KinetoImport {
  ComputeProfile profile;
  KinetoSummary summary;
};

// Throws InputError for what is no trace of training steps with shapes.
KinetoImport ImportKineto(const std::string& path);

}  // namespace stepcast

#endif  // STEPCAST_DATA_KINETO_IMPORT_KINETO_H_

// The events of a PyTorch profiler trace (Kineto: Chrome's trace format as JSON), without what an
// import does not use: call stacks, flows, counters. Read as a stream: an event takes some 80 bytes
// here, and arguments that repeat from step to step are kept once; or handed on one by one, and
// nothing kept.
//
// Categories are those of PyTorch 1.8 to 2.x (Operator and cpu_op, Kernel and kernel, ...); times
// are microseconds, as numbers or as text, kept in whole nanoseconds.
#ifndef STEPCAST_DATA_KINETO_TRACE_H_
#define STEPCAST_DATA_KINETO_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

enum class KinetoCategory : std::uint8_t {
  kOperator,
  kAnnotation,  // record_function(): steps, the optimizer
  kLaunch,      // a call of the device's runtime or driver
  kKernel,
  kTransfer,  // copies and fills by the device
};

// One argument of an operator.
struct KinetoInput {
  std::vector<std::int64_t> dims;               // empty for scalars and numbers
  std::vector<std::vector<std::int64_t>> list;  // those of a list of tensors
  std::string type;                             // "float", "c10::Half", "Scalar"; empty for none
  std::string value;                            // of what is no tensor: "[2, 2]", "True"
};
using KinetoInputs = std::vector<KinetoInput>;

struct KinetoEvent {
  std::int64_t start = 0;     // ns
  std::int64_t duration = 0;  // ns
  std::int64_t external = -1;
  std::int64_t correlation = -1;  // of a launch and of what it launched
  std::int64_t sequence = -1;     // links a forward operator and its backward node
  std::int64_t forward_thread = 0;
  int name = 0;
  int thread = 0;   // of operators and launches: a number for each (process, thread)
  int inputs = -1;  // none
  int device = 0;
  KinetoCategory category = KinetoCategory::kOperator;

  std::int64_t end() const { return start + duration; }
  // Whether the device did it, and not the host.
  bool of_device() const {
    return category == KinetoCategory::kKernel || category == KinetoCategory::kTransfer;
  }
};

struct KinetoDevice {
  int id = 0;
  std::string name;
  std::map<std::string, std::string> facts;  // by name, with unit
};

struct KinetoTrace {
  std::deque<KinetoEvent> events;  // in the order of the file
  std::vector<std::string> names;
  std::vector<KinetoInputs> inputs;
  std::vector<KinetoDevice> devices;
  std::map<std::string, std::string> facts;  // versions of the device's runtime and driver
  std::map<std::string, std::string> settings;
  // The plain values of distributedInfo, as text: "rank", "world_size", "backend".
  std::map<std::string, std::string> distributed;
  std::int64_t base_time = 0;  // ns since 1970, to which times are relative
  int threads = 0;

  const std::string& NameOf(const KinetoEvent& event) const {
    return names[static_cast<std::size_t>(event.name)];
  }
  // nullptr where the event has none.
  const KinetoInputs* InputsOf(const KinetoEvent& event) const {
    return event.inputs < 0 ? nullptr : &inputs[static_cast<std::size_t>(event.inputs)];
  }
};

// Throws InputError with file and line for what is not JSON, ends early or has a wrong value.
KinetoTrace ReadKinetoTrace(const std::string& path);

// What the arguments of a collective's event say of it, as text; empty where they do not.
struct KinetoMessage {
  std::string collective;  // "allreduce", "_allgather_base"
  std::string type;        // of its elements: "Float", "BFloat16"
  std::string in_elements, out_elements;
  std::string group_size, group, members;  // "4", "0", "[0, 1, 2, 3]"
  std::string number;                      // within its group
};

// Takes the events one by one, in the order of the file.
class KinetoVisitor {
 public:
  KinetoVisitor() = default;
  KinetoVisitor(const KinetoVisitor&) = delete;
  KinetoVisitor& operator=(const KinetoVisitor&) = delete;
  virtual ~KinetoVisitor() = default;
  // Whether the arguments of events of that name matter.
  virtual bool WantsInputs(std::string_view name) const = 0;
  // The event has no numbers for its name and inputs; `inputs` are null where it has none, or they
  // are not wanted.
  virtual void Take(const KinetoEvent& event, const std::string& name, const KinetoInputs* inputs,
                    const KinetoMessage& message) = 0;
};

// The same for a trace of any length: events go to the visitor, all else into what is returned.
KinetoTrace VisitKinetoTrace(const std::string& path, KinetoVisitor* visitor);

}  // namespace stepcast

#endif  // STEPCAST_DATA_KINETO_TRACE_H_

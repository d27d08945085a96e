// Jobs of the page: it follows none, and reads no files that jobs would be kept in.
#include "data/record/input_error.h"
#include "predictor/serve/jobs.h"

namespace stepcast::serve {

struct Jobs::SharedFleet {};
struct Jobs::Followed {};

Jobs::Jobs(std::size_t most) : most_(most) {}
Jobs::~Jobs() = default;

void Jobs::RefuseUnknown(const std::string& job) const {
  throw InputError({"", 0, "job"}, job, "is followed by no page", "a service: stepcast serve");
}

ObservedSteps Jobs::Observe(const Snapshot& /*snapshot*/, const std::string& job,
                            const TargetName& /*start*/, const MakePlan& /*make_plan*/,
                            const SeenSteps& /*seen*/) {
  RefuseUnknown(job);
}

std::shared_ptr<const Target> Jobs::Find(const std::string& job) const { RefuseUnknown(job); }

JobTold Jobs::End(const std::string& job, bool /*forget*/) { RefuseUnknown(job); }

std::vector<JobTold> Jobs::List() const { return {}; }

std::size_t Jobs::size() const { return 0; }

}  // namespace stepcast::serve

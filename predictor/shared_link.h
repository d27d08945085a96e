// Jobs whose nodes are on the same links: what each step takes alone, and beside the others.
//
//   o_i    of the shares r_j of the other jobs (model/network/sharing.h), each on its own
//   step   that of the plan with o_i others on its link
//
//   r_j    share of its step in which the link, at its rate, would carry what job j sends in a
//          direction                                                               [1]  0 to 1
//
// Jobs are on a link together where both name its host, or one of them names none and may be
// anywhere. Jobs whose hosts are all others have no link in common but the uplinks of a core that
// is oversubscribed, which those share whom it holds back. A job meets the largest crowd on any of
// its links.
//
// No link carries more than it can: where the steps at these o_i would send more than all of the
// time on one, the o_i of all who meet there, or meet those who do, grow by the same share of what
// is left to the number of the others, until they do not. That is so where flows, and not the link,
// hold back a job that is alone.
//
// Note that a job that is on no link with another takes as long as alone; and that whom it does not
// meet, directly or through others, makes no difference to a job.
//
// Holds while steps drift against each other. At best all take turns: then nobody loses anything as
// long as the r_j add up to one at most.
#ifndef STEPCAST_PREDICTOR_SHARED_LINK_H_
#define STEPCAST_PREDICTOR_SHARED_LINK_H_

#include <vector>

#include "data/record/plan.h"
#include "data/units/quantity.h"
#include "predictor/predictor.h"

namespace stepcast {

struct SharingJob {
  const Predictor* predictor = nullptr;  // outlives the call
  Plan plan;                             // that says of no others on its links
};

struct SharedJob {
  double link_busy = 0;  // r; of the uplinks where the core of the network binds
  double others = 0;     // o
  Duration<> alone;
  Duration<> beside;
  int met = 0;          // other jobs, on the fullest of its links,
  double together = 0;  // and the sum of their r and its own there
};

// r of a plan that has its links to itself; 0 where nothing leaves a node.
struct BusyLink {
  double share = 0;
  bool is_core = false;  // whether it is that of the uplinks, which hold the nodes' links back
};
BusyLink LinkBusy(const Predictor& predictor, const Plan& plan);

// In the order of the jobs, at most kMostJobsOnLink. Throws InputError for a plan that none of its
// predictor's can be.
std::vector<SharedJob> ShareLink(const std::vector<SharingJob>& jobs);

}  // namespace stepcast

#endif  // STEPCAST_PREDICTOR_SHARED_LINK_H_

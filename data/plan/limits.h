// The most that a plan may ask for, everywhere.
#ifndef STEPCAST_DATA_PLAN_LIMITS_H_
#define STEPCAST_DATA_PLAN_LIMITS_H_

namespace stepcast {

inline constexpr int kMostCount = 1'000'000;  // workers, nodes, servers, accumulation steps
inline constexpr int kMostBatch = 100'000'000;
inline constexpr double kMostOthers = 1000;  // exchanges of other jobs on a link
inline constexpr double kMostOversubscription = 1000;

}  // namespace stepcast

#endif  // STEPCAST_DATA_PLAN_LIMITS_H_

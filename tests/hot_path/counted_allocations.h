// Counts what this program allocates and frees.
#ifndef STEPCAST_TESTS_HOT_PATH_COUNTED_ALLOCATIONS_H_
#define STEPCAST_TESTS_HOT_PATH_COUNTED_ALLOCATIONS_H_

namespace stepcast {

// Why nothing is counted here; null where it is.
const char* WhyNotCounted();

// Calls of malloc and its kin so far, by which operator new allocates too, and of free.
long Allocations();

}  // namespace stepcast

#endif  // STEPCAST_TESTS_HOT_PATH_COUNTED_ALLOCATIONS_H_

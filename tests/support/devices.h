// Devices that tests of many rooms compute on.
#ifndef STEPCAST_TESTS_SUPPORT_DEVICES_H_
#define STEPCAST_TESTS_SUPPORT_DEVICES_H_

#include "data/record/machine.h"
#include "data/units/quantity.h"

namespace stepcast {

// As its data sheet has it.
inline Device T4() {
  Device t4;
  t4.name = "t4";
  t4.fp32 = TeraflopPerSecond(8.1);
  t4.memory = Gibibytes(16.0);
  t4.memory_bandwidth = GigabytesPerSecond(320.0);
  return t4;
}

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_DEVICES_H_

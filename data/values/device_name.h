// When two names mean one device.
#ifndef STEPCAST_DATA_VALUES_DEVICE_NAME_H_
#define STEPCAST_DATA_VALUES_DEVICE_NAME_H_

#include <optional>
#include <string>
#include <vector>

#include "data/record/input_error.h"
#include "data/record/machine.h"
#include "data/values/spelling.h"

namespace stepcast {

// Whether `name` is the device's name, its title or one of its aliases.
bool IsNamed(const Device& device, const std::string& name);

// The device that `name` means: its key, title or an alias, whatever the case and the separators
// ("RTX 4090", "rtx-4090" and "rtx_4090" are one). Empty when there is none.
std::optional<Device> FindDevice(const std::vector<Device>& devices, const std::string& name);

// A device without a data sheet, told with those that have one.
InputError NoDataSheet(const std::string& device, const std::vector<Device>& known,
                       const InputPlace& place);

// Throws InputError where a profile of `measured` is asked about another device: times of one
// device say nothing of another. `facts` is the device's data sheet, as far as it is known.
void RequireProfileOf(const std::string& measured, const std::string& device,
                      const std::optional<Device>& facts, const InputPlace& place);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_DEVICE_NAME_H_

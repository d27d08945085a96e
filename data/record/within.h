// Errors of a part that say which part it is.
#ifndef STEPCAST_DATA_RECORD_WITHIN_H_
#define STEPCAST_DATA_RECORD_WITHIN_H_

#include <string>

#include "data/record/input_error.h"

namespace stepcast {

// What `work()` returns; an InputError of its key "y" becomes one of "WHERE.y".
template <class Work>
auto Within(const std::string& where, const Work& work) {
  try {
    return work();
  } catch (const InputError& error) {
    InputPlace place = error.place();
    place.key = where + (place.key.empty() ? "" : "." + place.key);
    throw error.At(place);
  }
}

}  // namespace stepcast

#endif  // STEPCAST_DATA_RECORD_WITHIN_H_

// How a workload is trained, as files, options and requests say it: its precision, its optimizer,
// the form of its attention, what of it is recomputed. Each is a word; who reads or shows one goes
// through this list, so that they agree on names, words and errors.
#ifndef STEPCAST_DATA_VALUES_TRAINING_FACTS_H_
#define STEPCAST_DATA_VALUES_TRAINING_FACTS_H_

#include <span>
#include <string>
#include <string_view>

#include "data/record/input_error.h"
#include "data/record/workload.h"
#include "data/values/names.h"

namespace stepcast {

struct TrainingFact {
  const char* key = nullptr;          // in files and requests, and of the option
  const char* placeholder = nullptr;  // of the option's value
  const char* meaning = nullptr;
  const char* noun = "";  // behind a word that says too little by itself: "full" recompute
  Names words = {};
  int (*get)(const Workload& workload) = nullptr;  // the position of its word
  void (*set)(int word, Workload* workload) = nullptr;

  const char* WordOf(const Workload& workload) const {
    return words.names[static_cast<std::size_t>(get(workload))];
  }
  // "full recompute": its word as it is understood without the key.
  std::string Described(const Workload& workload) const {
    return *noun == '\0' ? WordOf(workload) : WordOf(workload) + (" " + std::string(noun));
  }
  // For the help of its option, behind `meaning`: its words, and what holds where none is stated.
  std::string more() const;
  // Whether it is what a workload is trained with where nobody says.
  bool IsDefault(const Workload& workload) const { return get(workload) == get(Workload()); }
  // Throws InputError at `place` for what is none of the words.
  void Read(std::string_view text, const InputPlace& place, Workload* workload) const {
    set(ParseName(text, place, words), workload);
    workload->as_others.erase(key);
  }
};

inline constexpr int kTrainingFactCount = 4;
std::span<const TrainingFact> TrainingFacts();

// nullptr where none has that key.
const TrainingFact* FindTrainingFact(std::string_view key);

// "gpt2 (fp16, adam)": its name, and what it is trained with where that is not the default.
std::string DescribeWorkload(const Workload& workload);

}  // namespace stepcast

#endif  // STEPCAST_DATA_VALUES_TRAINING_FACTS_H_

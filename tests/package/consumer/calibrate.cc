// Fits nothing to nothing, and is told so.
#include <stepcast/calibrate/calibrate.h>

int main() {
  using Status = stepcast::CalibrationOutcome::Status;
  return stepcast::Calibrate({}).status == Status::kNoRuns ? 0 : 1;
}

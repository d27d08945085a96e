// Signals that a thread waits for.
#ifndef STEPCAST_PREDICTOR_CLI_SIGNALS_H_
#define STEPCAST_PREDICTOR_CLI_SIGNALS_H_

#include <csignal>
#include <initializer_list>

namespace stepcast::cli {

// Signals are taken by the thread that waits for them: this one, and all that it starts from now on,
// leave them alone.
inline sigset_t BlockSignals(std::initializer_list<int> numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_SIGNALS_H_

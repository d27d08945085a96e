#include "predictor/cli/signals.h"

#include <chrono>
#include <ctime>
#include <thread>

namespace stepcast::cli {
namespace {

bool IsIgnored(int number) {
  struct sigaction current {};
  return sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

}  // namespace

void BlockSignal(int number) {
  sigset_t signal;
  sigemptyset(&signal);
  sigaddset(&signal, number);
  pthread_sigmask(SIG_BLOCK, &signal, nullptr);
}

sigset_t BlockInterrupts() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGINT, SIGTERM}) {
    if (IsIgnored(number)) continue;
    BlockSignal(number);
    sigaddset(&signals, number);
  }
  return signals;
}

void EndAtNextInterrupt(const sigset_t& interrupts) {
  constexpr std::chrono::milliseconds kMoment(300);
  std::this_thread::sleep_for(kMoment);
  const timespec now{};
  while (sigtimedwait(&interrupts, nullptr, &now) > 0) {
  }
  int signal = 0;
  if (sigwait(&interrupts, &signal) != 0) return;
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &interrupts, nullptr);
  std::raise(signal);
}

std::atomic<bool> interrupted = false;

void StopInOrder() {
  const sigset_t interrupts = BlockInterrupts();
  std::thread([interrupts] {
    int signal = 0;
    sigwait(&interrupts, &signal);
    interrupted = true;
    EndAtNextInterrupt(interrupts);
  }).detach();
}

}  // namespace stepcast::cli

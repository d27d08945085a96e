// Signals that a thread waits for and nothing handles: no handler may run on a measuring thread.
#ifndef STEPCAST_PREDICTOR_CLI_SIGNALS_H_
#define STEPCAST_PREDICTOR_CLI_SIGNALS_H_

#include <atomic>
#include <csignal>

namespace stepcast::cli {

// This thread, and all that it starts from now on, leave it to the one that waits for it.
void BlockSignal(int number);

// The same of SIGINT and SIGTERM, but for what the program was started to ignore, as a shell's
// background jobs are to ignore the terminal's interrupt.
sigset_t BlockInterrupts();

// After an interrupt that ends the program in order: does not return before another one, which ends
// the program at once. What comes within a moment of the first is the same one: a program that
// passes interrupts on, such as timeout, sends a second to whom the terminal has sent one.
void EndAtNextInterrupt(const sigset_t& interrupts);

// Whether an interrupt has come since StopInOrder.
extern std::atomic<bool> interrupted;
// The first interrupt sets `interrupted`, so that the program ends in order; another one later ends
// it at once. A thread waits for them: kernels that oneDNN makes have stacks of their own with no
// room for a signal's frame, which then overwrites what lies below. Threads that are started from
// now on leave them alone.
void StopInOrder();

}  // namespace stepcast::cli

#endif  // STEPCAST_PREDICTOR_CLI_SIGNALS_H_

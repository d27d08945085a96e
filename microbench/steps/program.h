// What programs of workers have in common: the work that they are given, and the moments of a step.
#ifndef STEPCAST_MICROBENCH_STEPS_PROGRAM_H_
#define STEPCAST_MICROBENCH_STEPS_PROGRAM_H_

#include <cstddef>
#include <functional>
#include <vector>

#include "microbench/network/socket.h"
#include "microbench/steps/work.h"

namespace stepcast::steps {

// How long a program waits for who should answer at once.
inline constexpr double kAnswerS = 30;

// What a worker times of one step.
struct Timing {
  TimedStep step;
  std::vector<double> bucket_s;  // in calls of each bucket
};

// How a worker's gradients are synchronised. Computing is waiting, so that whatever an exchange
// does runs beside it.
class Exchange {
 public:
  Exchange() = default;
  virtual ~Exchange() = default;
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  // Bucket k has become ready. May return before the others have it. Whoever is out of time tells
  // them.
  virtual void Send(std::size_t k, bool out_of_time, Timing* timing) = 0;
  // Returns when the worker may go on.
  virtual void Finish(Timing* timing) = 0;
  // Whether the step that has ended is the last one.
  virtual bool Over() const = 0;
};

// Workers that add up their gradients themselves, one bucket after the other.
class AllReduce : public Exchange {
 public:
  explicit AllReduce(const Training& training);
  // Behind the last bucket there is a number, which tells all whether one of them is out of time.
  void Send(std::size_t k, bool out_of_time, Timing* timing) final;
  void Finish(Timing* timing) final;
  bool Over() const final;

 protected:
  // Has each of these numbers be the sum of all workers' when it returns.
  virtual void AddUp(std::size_t k, float* numbers, std::size_t size) = 0;
  const Training& training() const { return training_; }

 private:
  const Training& training_;
  std::vector<float> gradients_;
  float* next_ = nullptr;  // of the bucket that comes next
  int steps_ = 0;
  bool over_ = false;
};

// Takes a worker's steps, and sends what was timed of them. `exchange` is null of one that has
// nobody to exchange anything with.
void Train(const Training& training, Exchange* exchange, network::LineSocket* line);

// What a program does with the work that it is given. `hosts` are the addresses of the workers'
// hosts, and behind them those of the servers'.
using DoWork = std::function<void(const Work& work, const std::vector<network::Address>& hosts,
                                  network::LineSocket* line)>;

// The main function of such a program: reads work and addresses from standard input, a socket to
// the host that started it, has it done, and says how it went.
int RunProgram(const DoWork& do_work);
// The same, one work after the other, until the host closes the socket.
void RunProgramToTheEnd(const DoWork& do_work);

}  // namespace stepcast::steps

#endif  // STEPCAST_MICROBENCH_STEPS_PROGRAM_H_

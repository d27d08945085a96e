// Threads for what nobody should wait for: they yield the processor to those that answer at once.
#ifndef STEPCAST_PREDICTOR_SERVE_WORK_POOL_H_
#define STEPCAST_PREDICTOR_SERVE_WORK_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace stepcast::serve {

class WorkPool {
 public:
  // At most `most_waiting` jobs wait for one of `threads`.
  WorkPool(int threads, std::size_t most_waiting);
  WorkPool(const WorkPool&) = delete;
  WorkPool& operator=(const WorkPool&) = delete;
  // Finishes what runs and drops what waits.
  ~WorkPool();

  // False where too many jobs wait already, and after Stop. A job must not throw.
  bool Post(std::function<void()> job);
  void Stop();

 private:
  void Work();

  const std::size_t most_waiting_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace stepcast::serve

#endif  // STEPCAST_PREDICTOR_SERVE_WORK_POOL_H_

#include "predictor/serve/work_pool.h"

#include <sys/resource.h>
#include <unistd.h>

#include <exception>
#include <utility>

namespace stepcast::serve {

WorkPool::WorkPool(int threads, std::size_t most_waiting) : most_waiting_(most_waiting) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

WorkPool::~WorkPool() { Stop(); }

bool WorkPool::Post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || waiting_.size() >= most_waiting_) return false;
    waiting_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

void WorkPool::Stop() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    dropped.swap(waiting_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void WorkPool::Work() {
  // On Linux a priority is a thread's own. Where it cannot be lowered, work is only less polite.
  constexpr int kYielding = 10;
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kYielding);
  for (;;) {
    std::function<void()> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      job = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      job();
    } catch (const std::exception&) {
      // For want of memory: what the job held, and so its client's connection, ends with it.
    }
  }
}

}  // namespace stepcast::serve

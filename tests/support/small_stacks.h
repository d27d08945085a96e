// Threads with as little stack as musl gives them.
#ifndef STEPCAST_TESTS_SUPPORT_SMALL_STACKS_H_
#define STEPCAST_TESTS_SUPPORT_SMALL_STACKS_H_

#include <pthread.h>

#include <cstddef>

namespace stepcast {

// As long as it lives threads that begin have 128 KiB of stack, where glibc is the C library.
class SmallStacks {
 public:
  SmallStacks() { Exchange(&before_, kSize); }
  SmallStacks(const SmallStacks&) = delete;
  SmallStacks& operator=(const SmallStacks&) = delete;
  ~SmallStacks() {
    std::size_t small = 0;
    Exchange(&small, before_);
  }

 private:
  static constexpr std::size_t kSize = 128 << 10;

  static void Exchange(std::size_t* before, std::size_t size) {
#ifdef __GLIBC__
    pthread_attr_t of_new;
    pthread_getattr_default_np(&of_new);
    pthread_attr_getstacksize(&of_new, before);
    pthread_attr_setstacksize(&of_new, size);
    pthread_setattr_default_np(&of_new);
    pthread_attr_destroy(&of_new);
#else
    static_cast<void>(before);
    static_cast<void>(size);
#endif
  }

  std::size_t before_ = 0;
};

}  // namespace stepcast

#endif  // STEPCAST_TESTS_SUPPORT_SMALL_STACKS_H_

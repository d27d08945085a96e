#include "tests/hot_path/counted_allocations.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define STEPCAST_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STEPCAST_SANITIZED
#endif

namespace stepcast {
namespace {

std::atomic<long> calls{0};

}  // namespace

#if defined(STEPCAST_SANITIZED)
const char* WhyNotCounted() { return "a sanitizer has malloc for itself"; }
#elif !defined(__GLIBC__)
const char* WhyNotCounted() { return "only glibc lets a program replace malloc and call it"; }
#else
const char* WhyNotCounted() { return nullptr; }
#endif

long Allocations() { return calls.load(std::memory_order_relaxed); }

}  // namespace stepcast

#if defined(__GLIBC__) && !defined(STEPCAST_SANITIZED)

// glibc's own names for what is replaced here.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);
}

namespace {

void Count() { stepcast::calls.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

extern "C" {

void* malloc(std::size_t size) {
  Count();
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  Count();
  return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
  Count();
  return __libc_realloc(memory, size);
}

void* memalign(std::size_t alignment, std::size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  Count();
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  Count();
  *memory = __libc_memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

void free(void* memory) {
  Count();
  __libc_free(memory);
}

}  // extern "C"

#endif

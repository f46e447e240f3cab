// Counts heap calls by standing in front of the C allocator; operator new of the C++ library arrives here
// too.
#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "../port.hpp"
#include "sanitizer.hpp"

namespace {
std::atomic<std::size_t> calls{0};
}

std::size_t port::heap_calls() { return calls.load(std::memory_order_relaxed); }

#if ATTUNE_SANITIZED

// The sanitizer owns malloc and offers a hook instead; weak because not every runtime has it.
extern "C" [[gnu::weak]] int __sanitizer_install_malloc_and_free_hooks(  // NOLINT: a reserved name, not ours
    void (*on_malloc)(const volatile void*, std::size_t), void (*on_free)(const volatile void*));

namespace {
[[gnu::constructor]] void install_hooks() {
  if (__sanitizer_install_malloc_and_free_hooks == nullptr) return;
  __sanitizer_install_malloc_and_free_hooks(
      [](const volatile void*, std::size_t) { calls.fetch_add(1, std::memory_order_relaxed); },
      [](const volatile void*) {});
}
}  // namespace

#elif defined(__GLIBC__)

extern "C" {

// glibc's own entry points under the names it keeps for interposers.
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}

void* realloc(void* block, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(block, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}

int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  calls.fetch_add(1, std::memory_order_relaxed);
  void* const memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *block = memory;
  return 0;
}

}  // extern "C"

#endif

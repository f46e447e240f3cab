// ATTUNE_SANITIZED: this build has a sanitizer that owns the stack layout and the allocator.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ATTUNE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define ATTUNE_SANITIZED 1
#endif
#endif

#ifndef ATTUNE_SANITIZED
#define ATTUNE_SANITIZED 0
#endif

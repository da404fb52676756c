#pragma once

// The one kind of memory for what vector instructions load and store.

#include <hwy/aligned_allocator.h>

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace headflow {

/// As Highway aligns memory. Numbers without a given value are not set to zero: samples may take
/// gigabytes, which are to be touched first by those who fill them.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>& /*other*/) {}
  T* allocate(std::size_t n) {
    void* out = hwy::AllocateAlignedBytes(n * sizeof(T), nullptr, nullptr);
    if (!out) throw std::bad_alloc();
    return static_cast<T*>(out);
  }
  void deallocate(T* p, std::size_t /*n*/) { hwy::FreeAlignedBytes(p, nullptr, nullptr); }
  template <class U>
  void construct(U* p) {
    ::new (static_cast<void*>(p)) U;
  }
  template <class U, class... Values>
  void construct(U* p, Values&&... values) {
    ::new (static_cast<void*>(p)) U(std::forward<Values>(values)...);
  }
  bool operator==(const AlignedAllocator& /*other*/) const { return true; }
};

template <class T>
using AlignedArray = std::vector<T, AlignedAllocator<T>>;
using AlignedVector = AlignedArray<double>;

}  // namespace headflow

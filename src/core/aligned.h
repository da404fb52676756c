#pragma once

#include <cstdlib>
#include <new>
#include <vector>

namespace headflow {

/// For arrays that vector instructions load whole cache lines from.
template <class T>
struct AlignedAllocator {
  using value_type = T;
  static constexpr std::align_val_t kAlignment{64};
  AlignedAllocator() = default;
  template <class U>
  explicit AlignedAllocator(const AlignedAllocator<U>& /*other*/) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), kAlignment)); }
  void deallocate(T* p, std::size_t /*n*/) { ::operator delete(p, kAlignment); }
  bool operator==(const AlignedAllocator& /*other*/) const { return true; }
};

using AlignedVector = std::vector<double, AlignedAllocator<double>>;

}  // namespace headflow

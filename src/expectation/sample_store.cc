#include "expectation/sample_store.h"

#include <algorithm>
#include <utility>

#include "core/random.h"

namespace headflow {
namespace {

constexpr std::size_t kL1Budget = 64 << 10;    // bytes of samples and scores in flight
constexpr std::size_t kBlockBudget = 8 << 20;  // bytes of samples a worker regenerates
constexpr std::int64_t kBlockGroups = 32;

}  // namespace

LaneBuffer<double> allocate_lanes(std::size_t groups) {
  return hwy::AllocateAligned<double>(std::max<std::size_t>(1, groups) * kLanes);
}

Blocking choose_blocking(std::int64_t groups, std::size_t sample_bytes, std::size_t score_bytes,
                         std::int64_t fewest_chunks) {
  std::int64_t block = kBlockGroups;
  while (block > 1 && static_cast<std::size_t>(block) * sample_bytes > kBlockBudget) block /= 2;
  std::int64_t chunk = block;
  while (chunk > 1 && (static_cast<std::size_t>(chunk) * (sample_bytes + score_bytes) > kL1Budget ||
                       groups / chunk < fewest_chunks)) {
    chunk /= 2;
  }
  return {block, chunk};
}

SampleStore::SampleStore(const Shape& shape, const Workers& workers, Make make)
    : shape_(shape), make_(std::move(make)) {
  const std::size_t bytes = shape_.group_size * (shape_.single_precision ? 4 : 8);
  kept_ = static_cast<double>(shape_.groups) * static_cast<double>(bytes) <
          static_cast<double>(shape_.memory) * 0x1p20;
  generated_.resize(static_cast<std::size_t>(workers.count()));
  for (auto& buffer : generated_) {
    buffer = hwy::AllocateAligned<double>(shape_.group_size + shape_.spare);
  }
  if (kept_) {
    allocate(shape_.groups, kept_buffers_);
  } else {
    own_.resize(generated_.size());
    for (Buffers& buffers : own_) allocate(shape_.block_groups, buffers);
  }
}

void SampleStore::allocate(std::int64_t groups, Buffers& buffers) const {
  const std::size_t size = static_cast<std::size_t>(groups) * shape_.group_size;
  if (shape_.single_precision) {
    buffers.narrow = hwy::AllocateAligned<float>(size);
  } else {
    buffers.wide = hwy::AllocateAligned<double>(size);
  }
}

void SampleStore::fill(const Workers& workers) {
  if (!kept_) return;
  workers.for_each_block(
      static_cast<std::size_t>(shape_.groups), [&](std::size_t group, int worker) {
        const auto number = static_cast<std::int64_t>(group);
        if (shape_.single_precision) {
          make_group(number, worker, kept_buffers_.narrow.get() + group * shape_.group_size);
        } else {
          make_group(number, worker, kept_buffers_.wide.get() + group * shape_.group_size);
        }
      });
}

template <class T>
void SampleStore::make_group(std::int64_t group, int worker, T* out) {
  double* values = generated_[static_cast<std::size_t>(worker)].get();
  make_(group, values);
  std::transform(values, values + shape_.group_size, out,
                 [](double x) { return static_cast<T>(x); });
}

template void SampleStore::make_group(std::int64_t, int, float*);
template void SampleStore::make_group(std::int64_t, int, double*);

}  // namespace headflow

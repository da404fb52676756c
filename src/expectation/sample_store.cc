#include "expectation/sample_store.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "core/memory.h"
#include "core/random.h"

namespace headflow {
namespace {

constexpr std::size_t kL1Budget = 64 << 10;    // bytes of samples and scores in flight
constexpr std::size_t kBlockBudget = 8 << 20;  // bytes of samples a worker regenerates
constexpr std::int64_t kBlockGroups = 32;
constexpr double kMiB = 0x1p20;

/// What may be asked of this machine: most of its memory, whoever else uses it.
double bytes_of_machine() { return 0.8 * machine_memory(); }

template <class T>
AlignedArray<T> allocate(std::size_t size) {
  AlignedArray<T> out;
  if (size <= out.max_size()) {
    try {
      out.resize(size);
      return out;
    } catch (const std::bad_alloc&) {  // what to do about it is known here
    }
  }
  throw Error(
      fmt::format("there is no memory for samples ({:.0f} MiB at once): take fewer "
                  "tokens, heads or threads, or a smaller program.memory",
                  static_cast<double>(size) * sizeof(T) / kMiB));
}

}  // namespace

AlignedVector allocate_lanes(std::size_t groups) {
  return allocate<double>(std::max<std::size_t>(1, groups) * kLanes);
}

Workers affordable_workers(const EngineOptions& options, const Context& context,
                           double bytes_of_worker) {
  const double available = bytes_of_machine();
  if (bytes_of_worker > available) {
    throw OptionError("run.engine", in_quotes(to_string(options.engine)),
                      fmt::format("a sample of so many tokens, heads and features takes {:.0f} MiB "
                                  "of memory, and there are {:.0f}",
                                  bytes_of_worker / kMiB, available / kMiB));
  }
  const double most = std::min(available, static_cast<double>(options.memory) * kMiB);
  const double affordable = std::clamp(most / std::max(1.0, bytes_of_worker), 1.0, 1e6);
  return Workers(context, static_cast<int>(affordable));
}

Blocking choose_blocking(std::int64_t groups, std::size_t sample_bytes, std::size_t score_bytes,
                         std::int64_t fewest_chunks) {
  std::int64_t block = kBlockGroups;
  while (block > 1 && at(block) * sample_bytes > kBlockBudget) block /= 2;
  std::int64_t chunk = block;
  while (chunk > 1 &&
         (at(chunk) * (sample_bytes + score_bytes) > kL1Budget || groups / chunk < fewest_chunks)) {
    chunk /= 2;
  }
  return {block, chunk};
}

SampleStore::SampleStore(const Shape& shape, const Workers& workers, Make make)
    : shape_(shape), make_(std::move(make)) {
  const std::size_t bytes = shape_.group_size * (shape_.single_precision ? 4 : 8);
  kept_ = static_cast<double>(shape_.groups) * static_cast<double>(bytes) <
          static_cast<double>(shape_.memory) * 0x1p20;
  const double total = static_cast<double>(shape_.groups) * static_cast<double>(bytes);
  if (kept_ && total > bytes_of_machine()) {
    throw OptionError(
        "program.memory", fmt::format("{}", shape_.memory),
        fmt::format("the samples take {:.0f} MiB, more than this machine can keep ({:.0f}); with a "
                    "smaller number they are made anew at each evaluation",
                    total / kMiB, bytes_of_machine() / kMiB));
  }
  generated_.resize(at(workers.count()));
  own_.resize(generated_.size());
  if (kept_) allocate_groups(shape_.groups, kept_buffers_);
}

/// Room of a worker, made when it first has something to do.
double* SampleStore::generated(int worker) {
  AlignedVector& buffer = generated_[at(worker)];
  if (buffer.empty()) buffer = allocate<double>(shape_.group_size + shape_.spare);
  return buffer.data();
}

void SampleStore::allocate_groups(std::int64_t groups, Buffers& buffers) const {
  const std::size_t size = at(groups) * shape_.group_size;
  if (shape_.single_precision) {
    if (buffers.narrow.empty()) buffers.narrow = allocate<float>(size);
  } else if (buffers.wide.empty()) {
    buffers.wide = allocate<double>(size);
  }
}

void SampleStore::fill(const Workers& workers) {
  if (!kept_) return;
  workers.for_each_block(at(shape_.groups), [&](std::size_t group, int worker) {
    const auto number = static_cast<std::int64_t>(group);
    if (shape_.single_precision) {
      make_group(number, worker, kept_buffers_.narrow.data() + group * shape_.group_size);
    } else {
      make_group(number, worker, kept_buffers_.wide.data() + group * shape_.group_size);
    }
  });
}

template <class T>
void SampleStore::make_group(std::int64_t group, int worker, T* out) {
  double* values = generated(worker);
  make_(group, values);
  std::transform(values, values + shape_.group_size, out,
                 [](double x) { return static_cast<T>(x); });
}

template void SampleStore::make_group(std::int64_t, int, float*);
template void SampleStore::make_group(std::int64_t, int, double*);

}  // namespace headflow

// What this machine can do at best: fused multiply-adds in registers, and reading memory.

#include "core/simd_dispatch.h"

// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "roofline.cc"
#include <hwy/foreach_target.h>
// clang-format on
#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace headflow::bench::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<double, 8>;
constexpr D d{};

// Latency 4, two a cycle at most: 8 chains would do. 12 leave slack and still fit in the
// 16 registers of AVX2.
constexpr int kChains = 12;

/// steps * kChains fused multiply-adds of vectors, in registers.
double Fma(std::size_t steps, double x, double y) {
  const auto vx = hn::Set(d, x), vy = hn::Set(d, y);
  hn::Vec<D> sum[kChains];
  HWY_UNROLL(12)
  for (int i = 0; i < kChains; ++i) sum[i] = hn::Set(d, 1.0 + i);
  for (std::size_t n = 0; n < steps; ++n) {
    HWY_UNROLL(12)
    for (int i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], vx, vy);
  }
  auto total = sum[0];
  HWY_UNROLL(11)
  for (int i = 1; i < kChains; ++i) total = hn::Add(total, sum[i]);
  return hn::GetLane(hn::SumOfLanes(d, total));
}

/// Sum of count numbers, count a multiple of 64.
double Read(const double* from, std::size_t count) {
  constexpr std::size_t lanes = HWY_LANES(double) < 8 ? HWY_LANES(double) : 8;
  auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (std::size_t i = 0; i < count; i += 4 * lanes) {
    sum0 = hn::Add(sum0, hn::Load(d, from + i));
    sum1 = hn::Add(sum1, hn::Load(d, from + i + lanes));
    sum2 = hn::Add(sum2, hn::Load(d, from + i + 2 * lanes));
    sum3 = hn::Add(sum3, hn::Load(d, from + i + 3 * lanes));
  }
  const auto total = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  return hn::GetLane(hn::SumOfLanes(d, total));
}

std::size_t FlopsPerStep() { return kChains * 2 * hn::Lanes(d); }
const char* InstructionSet() { return hwy::TargetName(HWY_TARGET); }

}  // namespace
}  // namespace headflow::bench::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <benchmark/benchmark.h>
#include <hwy/aligned_allocator.h>

#include <algorithm>

#include "benchmarks.h"
#include "kernel_cost.h"

namespace headflow::bench {
HWY_EXPORT(Fma);
HWY_EXPORT(Read);
HWY_EXPORT(FlopsPerStep);
HWY_EXPORT(InstructionSet);

namespace {

void fma_peak(benchmark::State& state) {
  constexpr std::size_t steps = 10'000;
  double x = 0.5, y = 0.25;
  benchmark::DoNotOptimize(x);
  benchmark::DoNotOptimize(y);
  for (auto _ : state) benchmark::DoNotOptimize(HWY_DYNAMIC_DISPATCH(Fma)(steps, x, y));
  const auto flops = static_cast<double>(steps * HWY_DYNAMIC_DISPATCH(FlopsPerStep)());
  state.counters["flops_per_second"] = benchmark::Counter(
      flops * static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}

void read_bandwidth(benchmark::State& state, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(double) / 64 * 64;
  const auto buffer = hwy::AllocateAligned<double>(count);
  std::fill_n(buffer.get(), count, 1.0);
  for (auto _ : state) {
    benchmark::DoNotOptimize(HWY_DYNAMIC_DISPATCH(Read)(buffer.get(), count));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(count * sizeof(double)));
}

}  // namespace

void register_roofline() {
  benchmark::AddCustomContext("instruction_set", HWY_DYNAMIC_DISPATCH(InstructionSet)());
#ifdef __clang__
  benchmark::AddCustomContext("compiler", __VERSION__);
#else
  benchmark::AddCustomContext("compiler", "GCC " __VERSION__);
#endif
  // Two threads at once tell whether two cores are more than two halves of one.
  benchmark::RegisterBenchmark("fma_peak/1_thread", fma_peak)->UseRealTime();
  benchmark::RegisterBenchmark("fma_peak/2_thread", fma_peak)->Threads(2)->UseRealTime();

  const auto add = [](const std::string& name, std::size_t bytes) {
    benchmark::RegisterBenchmark(("read_bandwidth/" + name).c_str(), read_bandwidth, bytes)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  add("memory", std::size_t{256} << 20);
  for (const Case& c : kCases) {
    for (const auto& [precision, name] : kNames<Precision>) {
      const EngineOptions options{.samples = kSamples, .precision = precision};
      const double bytes = kernel_cost(c, "softmax", options).bytes;
      add(c.name() + "/" + std::string(name), static_cast<std::size_t>(bytes));
    }
  }
}

}  // namespace headflow::bench
#endif  // HWY_ONCE

// Steps of SGD: both methods, at several dimensions, and the bare generator of normals.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <vector>

#include "benchmarks.h"
#include "cases.h"
#include "sgd/method.h"

namespace headflow::bench {
namespace {

void step(benchmark::State& state, const Case& c, const std::string& activation, bool direct,
          std::int64_t dimension, std::int64_t batch) {
  const Problem problem = make_problem(c, activation);
  const Workers workers;
  const SgdSetting setting{dimension, batch, 0.02, 1, 0};
  const auto make = direct ? make_direct : make_reduced;
  const auto sgd = make(problem, setting, initial_state(problem, dimension, 1, 0), workers);
  std::int64_t k = 0;
  for (auto _ : state) benchmark::DoNotOptimize(sgd->step(k++));
  state.counters["ns_per_sample"] = benchmark::Counter(
      1e-9 * static_cast<double>(batch),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
  state.counters["normals_per_second"] = benchmark::Counter(
      static_cast<double>(batch * c.L * dimension), benchmark::Counter::kIsIterationInvariantRate);
}

void generator(benchmark::State& state) {
  constexpr int count = 1250;
  std::vector<double> out(count * kLanes);
  std::uint64_t group = 0;
  for (auto _ : state) {
    fill_normals({1, Purpose::noise, 0}, group++, count, out.data());
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["normals_per_second"] = benchmark::Counter(
      static_cast<double>(count * kLanes), benchmark::Counter::kIsIterationInvariantRate);
}

template <class Body>
void add(const std::string& name, const Body& body) {
  benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime()->Unit(benchmark::kMillisecond);
}

}  // namespace

void register_sgd() {
  const auto add_step = [](const Case& c, const std::string& activation, const char* method,
                           std::int64_t dimension, std::int64_t batch) {
    add(fmt::format("sgd/{}/{}/{}/D{}", method, c.name(), activation, dimension), [=](auto& state) {
      step(state, c, activation, std::string(method) == "direct", dimension, batch);
    });
  };
  const Case small{2, 2, 10}, large{8, 4, 5};
  for (const std::string activation : kActivations) {
    // The cost of `direct` is that of its samples, one after the other: a few tell.
    add_step(small, activation, "direct", 10'000, 100);
    for (const std::int64_t dimension : {10'000LL, 1'000'000'000LL}) {
      add_step(small, activation, "reduced", dimension, 10'000);
      add_step(large, activation, "reduced", dimension, 10'000);
    }
  }
  add("sgd/generator", generator);
}

}  // namespace headflow::bench

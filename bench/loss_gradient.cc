// Loss and gradient of the Monte-Carlo engine, new samples, and the errors reached.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>

#include "benchmarks.h"
#include "cases.h"
#include "expectation/engine.h"
#include "kernel_cost.h"

namespace headflow::bench {
namespace {

void loss_gradient(benchmark::State& state, const Case& c, const std::string& activation,
                   const EngineOptions& options, int threads) {
  const auto engine =
      make_engine(make_problem(c, activation), options, {}, Context::threads(threads));
  const Point point = make_point(c, activation);
  Evaluation out;
  for (auto _ : state) {
    engine->evaluate(point, {}, out);
    benchmark::DoNotOptimize(out.loss);
  }
  const KernelCost cost = kernel_cost(c, activation, options);
  state.counters["flops_per_evaluation"] = cost.flops;
  state.counters["bytes_per_evaluation"] = cost.bytes;
  state.SetItemsProcessed(state.iterations() * options.samples);
}

void refresh(benchmark::State& state, const Case& c, const EngineOptions& options) {
  const auto engine = make_engine(make_problem(c, "softmax"), options);
  std::uint32_t draw = 0;
  for (auto _ : state) engine->refresh(++draw);
  state.SetItemsProcessed(state.iterations() * options.samples);
}

/// Not a timing: the standard errors of one evaluation, and values with the error of
/// `draws` evaluations, to compare with a sampler that shares no noise between samples.
void standard_error(benchmark::State& state, const Case& c, const std::string& activation,
                    const EngineOptions& options) {
  constexpr int draws = 16;
  const auto engine = make_engine(make_problem(c, activation), options);
  const Point point = make_point(c, activation);
  struct Sum {
    double value = 0, variance = 0;
    void add(double x, double error) {
      value += x / draws;
      variance += error * error / draws;
    }
  } loss, m00, R01;
  for (auto _ : state) {
    for (std::uint32_t draw = 0; draw < draws; ++draw) {
      Evaluation out;
      engine->refresh(draw);
      engine->evaluate(point, {.gradient_error = true}, out);
      loss.add(out.loss, out.loss_error);
      m00.add(out.grad.m(0, 0), out.grad_error.m(0, 0));
      R01.add(out.grad.R(0, 1), out.grad_error.R(0, 1));
    }
  }
  const auto report = [&](const std::string& name, const Sum& sum) {
    state.counters[name + "_value"] = sum.value;
    state.counters[name + "_error"] = std::sqrt(sum.variance);
    state.counters[name + "_value_error"] = std::sqrt(sum.variance / draws);
  };
  report("loss", loss);
  report("m00", m00);
  report("R01", R01);
}

template <class Body>
benchmark::internal::Benchmark* add(const std::string& name, const Body& body) {
  return benchmark::RegisterBenchmark(name.c_str(), body)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

}  // namespace

void register_loss_gradient() {
  const EngineOptions one_thread{.samples = kSamples};
  for (const Case& c : kCases) {
    for (const std::string activation : kActivations) {
      const auto add_evaluation = [&](const EngineOptions& options, int threads) {
        add(fmt::format("loss_gradient/{}/{}/{}/{}_thread", c.name(), activation,
                        to_string(options.precision), threads),
            [=](auto& state) { loss_gradient(state, c, activation, options, threads); });
      };
      add_evaluation(one_thread, 1);
      add_evaluation({.samples = kSamples, .precision = Precision::float32}, 1);
      add_evaluation(one_thread, 2);
      add(fmt::format("standard_error/{}/{}", c.name(), activation), [=](auto& state) {
        standard_error(state, c, activation, one_thread);
      })->Iterations(1);
    }
    add(fmt::format("refresh/{}", c.name()), [=](auto& state) { refresh(state, c, one_thread); });
  }
}

}  // namespace headflow::bench

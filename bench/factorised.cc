// The factorised engine next to Monte Carlo, its dependence on L, and work against precision.

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "benchmarks.h"
#include "cases.h"
#include "expectation/engine.h"

namespace headflow::bench {
namespace {

constexpr double kTolerances[] = {1e-4, 1e-6};
constexpr double kReference = 1e-10;

/// A case at one point: R of cases.h times `size`.
struct Setting {
  Case c;
  std::string activation;
  double size;

  Problem problem() const { return make_problem(c, activation); }
  Point point() const { return make_point(c, activation, size); }
  std::string name() const { return fmt::format("{}/{}/R{:g}", c.name(), activation, size); }
};

std::unique_ptr<Engine> factorised(const Setting& setting, double tolerance) {
  return make_engine(setting.problem(), {.engine = EngineName::factorised, .tolerance = tolerance});
}

double largest_entry(const Point& x) { return x.packed().cwiseAbs().maxCoeff(); }

double largest_difference(const Point& a, const Point& b) {
  return (a.packed() - b.packed()).cwiseAbs().maxCoeff();
}

/// Times evaluations at the setting's point; the engine has its samples or nodes before.
void time_evaluations(benchmark::State& state, const Setting& setting, Engine& engine,
                      const Request& request) {
  const Point point = setting.point();
  Evaluation out;
  engine.evaluate(point, request, out);
  for (auto _ : state) {
    engine.evaluate(point, request, out);
    benchmark::DoNotOptimize(out.loss);
  }
  state.counters["nodes"] = static_cast<double>(engine.samples());
}

void adapt(benchmark::State& state, const Setting& setting, double tolerance) {
  const auto engine = factorised(setting, tolerance);
  const Point point = setting.point();
  for (auto _ : state) engine->adapt(point);
}

void hessian(benchmark::State& state, const Setting& setting, double tolerance) {
  const auto engine = factorised(setting, tolerance);
  const Point point = setting.point(), direction = point;
  Point out;
  engine->hessian_product(point, direction, out);
  for (auto _ : state) {
    engine->hessian_product(point, direction, out);
    benchmark::DoNotOptimize(out.m.data());
  }
}

Evaluation reference(const Setting& setting) {
  Evaluation out;
  factorised(setting, kReference)->evaluate(setting.point(), {.gradient_error = true}, out);
  return out;
}

/// Not a timing: the error of the gradient, as it is and as the engine reports it.
void accuracy(benchmark::State& state, const Setting& setting) {
  for (auto _ : state) {
    const Evaluation exact = reference(setting);
    state.counters["reference_reported"] = largest_entry(exact.grad_error);
    for (const double tolerance : kTolerances) {
      Evaluation out;
      factorised(setting, tolerance)->evaluate(setting.point(), {.gradient_error = true}, out);
      state.counters[fmt::format("{:g}_error", tolerance)] =
          largest_difference(out.grad, exact.grad);
      state.counters[fmt::format("{:g}_reported", tolerance)] = largest_entry(out.grad_error);
    }
  }
}

/// Not a timing: the root mean square, over independent sets of samples, of the largest entry of
/// gradient minus exact gradient.
void work_error(benchmark::State& state, const Setting& setting, const EngineOptions& options) {
  const int sets = options.engine == EngineName::factorised ? 1 : 8;
  double squares = 0;
  for (auto _ : state) {
    const auto engine = make_engine(setting.problem(), options);
    const Evaluation exact = reference(setting);
    for (int set = 0; set < sets; ++set) {
      Evaluation out;
      if (set > 0) engine->refresh(static_cast<std::uint32_t>(set));
      engine->evaluate(setting.point(), {.loss_error = false}, out);
      squares += std::pow(largest_difference(out.grad, exact.grad), 2) / sets;
    }
  }
  state.counters["error"] = std::sqrt(squares);
}

/// Not a timing: the gradient, for peers to compare with, numbered along the rows of [m R], then b
/// and v: zeros if there are none, as in the peers.
void exact_gradient(benchmark::State& state, const Setting& setting) {
  for (auto _ : state) {
    const Point grad = reference(setting).grad;
    Matrix both(grad.heads(), grad.features() + grad.heads());
    both << grad.m, grad.R;
    Vector flat = Vector::Zero(both.size() + grad.heads() + 1);
    flat.head(both.size()) = both.reshaped<Eigen::RowMajor>();
    if (grad.blocks.has("b")) flat.segment(both.size(), grad.heads()) = grad["b"];
    if (grad.blocks.has("v")) flat.tail(1) = grad["v"];
    for (Eigen::Index i = 0; i < flat.size(); ++i) {
      state.counters[fmt::format("gradient_{}", i)] = flat[i];
    }
  }
}

template <class Body>
benchmark::internal::Benchmark* add(const std::string& name, const Body& body) {
  return benchmark::RegisterBenchmark(name.c_str(), body)
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void register_comparison(const Setting& setting) {
  const std::string name = "factorised/" + setting.name();
  add(name + "/mc", [=](auto& state) {
    const auto engine =
        make_engine(setting.problem(), {.engine = EngineName::mc, .samples = kSamples});
    time_evaluations(state, setting, *engine, {.loss_error = false});
  });
  for (const double tolerance : kTolerances) {
    const std::string at = fmt::format("{}/{:g}/", name, tolerance);
    add(at + "evaluate", [=](auto& state) {
      time_evaluations(state, setting, *factorised(setting, tolerance), {.loss_error = false});
    });
    add(at + "evaluate_with_error", [=](auto& state) {
      time_evaluations(state, setting, *factorised(setting, tolerance), {.gradient_error = true});
    });
    add(at + "adapt", [=](auto& state) { adapt(state, setting, tolerance); });
    add(at + "hessian", [=](auto& state) { hessian(state, setting, tolerance); });
  }
  add("accuracy/" + setting.name(), [=](auto& state) { accuracy(state, setting); })->Iterations(1);
}

void register_length(Setting setting) {
  const std::string name = "length/" + setting.name();
  for (const int L : {10, 1'000'000}) {
    setting.c.L = L;
    add(fmt::format("{}/L{}", name, L), [=](auto& state) {
      time_evaluations(state, setting, *factorised(setting, 1e-6), {.loss_error = false});
    });
  }
}

void register_work(const Setting& setting) {
  const auto add_point = [&](const EngineOptions& options, const std::string& name) {
    add("work/" + name, [=](auto& state) {
      const auto engine = make_engine(setting.problem(), options);
      time_evaluations(state, setting, *engine, {.loss_error = false});
    });
    add("work_error/" + name, [=](auto& state) {
      work_error(state, setting, options);
    })->Iterations(1);
  };
  for (const EngineName engine : {EngineName::mc, EngineName::qmc}) {
    for (int log2 = 10; log2 <= 20; log2 += 2) {
      const EngineOptions options{.engine = engine, .samples = 1 << log2};
      add_point(options,
                fmt::format("{}/{}/{}", setting.name(), to_string(engine), options.samples));
    }
  }
  for (int digits = 3; digits <= 9; ++digits) {
    const EngineOptions options{.engine = EngineName::factorised,
                                .tolerance = std::pow(10.0, -digits)};
    add_point(options, fmt::format("{}/factorised/1e-{}", setting.name(), digits));
  }
  add("exact/" + setting.name(), [=](auto& state) {
    exact_gradient(state, setting);
  })->Iterations(1);
}

}  // namespace

void register_factorised() {
  for (const Case& c : kCases) {
    for (const std::string activation : kActivations) {
      // All heads of B-softmax share a denominator: its dimension is the rank of q, F if R = 0.
      const bool joint = activation == "b-softmax";
      for (const double size : joint ? std::vector{0.0} : std::vector{1.0, 0.1}) {
        register_comparison({c, activation, size});
      }
      register_length({c, activation, joint ? 0.0 : 1.0});
    }
  }
  register_work({{2, 2, 10}, "softmax", 1.0});
  register_work({{8, 4, 5}, "softmax-1", 1.0});
}

}  // namespace headflow::bench

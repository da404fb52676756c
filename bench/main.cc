// Roofline and kernel in one binary, so that both see the machine in the same state.

#include <benchmark/benchmark.h>

#include "benchmarks.h"

int main(int argc, char** argv) {
  headflow::bench::register_roofline();
  headflow::bench::register_loss_gradient();
  headflow::bench::register_factorised();
  headflow::bench::register_sgd();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}

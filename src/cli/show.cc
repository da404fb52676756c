#include "cli/show.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/error.h"
#include "io/atomic_file.h"
#include "io/result_file.h"
#include "io/result_json.h"

namespace headflow::cli {
namespace {

/// "(1.00 0.50)", of numbers from `at` on.
std::string list_text(const Quantity& q, std::size_t at, std::size_t count) {
  std::string out;
  for (std::size_t i = at; i < at + count; ++i) {
    out += fmt::format("{}{:.2f}", out.empty() ? "" : " ", q.values[i]);
  }
  return "(" + out + ")";
}

bool of_heads(const Quantity& q) {
  return !q.dimensions.empty() && q.dimensions[0].name == "attention_head";
}

}  // namespace

void put_out(const Invocation& call, Dataset& result, const std::string& last_of) {
  result.provenance.command = call.command_line;
  const std::string& output = call.config.result.output;
  if (!output.empty()) {
    write_result(output, result);
    if (!call.quiet) fmt::print(stderr, "wrote {}\n", output);
  }
  if (!call.json) return;
  Dataset shown = last_of.empty() ? result : result.last(last_of);
  if (!output.empty()) shown.set("output", output);
  fmt::print("{}\n", json_text(shown));
}

void require_use_of_result(const Invocation& call) {
  const std::string& output = call.config.result.output;
  if (output.empty() && !call.json) {
    throw Error("nothing to do with the result; give --output FILE.nc or --json");
  }
  if (!output.empty()) check_writable(output);
}

int places(double error) {
  return error > 0 ? std::clamp(static_cast<int>(std::ceil(-std::log10(error))) + 1, 2, 13) : 6;
}

void print_point(const Dataset& result) {
  const Quantity &m = result["m"], &R = result["R"];
  const std::size_t H = m.dimensions[0].size, F = m.dimensions[1].size;
  for (std::size_t h = 0; h < H; ++h) {
    fmt::print("  head {}: m", h + 1);
    for (std::size_t f = 0; f < F; ++f) fmt::print(" {:>11.7f}", m.values[h * F + f]);
    double square = 0;
    for (std::size_t k = 0; k < H; ++k) square += R.values[h * H + k] * R.values[h * H + k];
    fmt::print("   |R_h| {:.2g}", std::sqrt(square));
    for (const Quantity& q : result.quantities) {
      if (q.role != "parameter" || !of_heads(q)) continue;
      const std::size_t row = q.size() / H;
      fmt::print("   {}", q.name);
      for (std::size_t i = h * row; i < (h + 1) * row; ++i) fmt::print(" {:>11.7f}", q.values[i]);
    }
    fmt::print("\n");
  }
  for (const Quantity& q : result.quantities) {
    if (q.role != "parameter" || of_heads(q)) continue;
    fmt::print("  {}", q.name);
    for (const double x : q.values) fmt::print(" {:.7f}", x);
    fmt::print("\n");
  }
}

std::string point_text(const Dataset& result, std::size_t entry) {
  const Quantity& m = result["m"];
  const std::size_t H = m.dimensions[1].size, F = m.dimensions[2].size;
  std::string out;
  for (std::size_t h = 0; h < H; ++h) {
    out += (out.empty() ? "" : " ") + list_text(m, (entry * H + h) * F, F);
  }
  for (const Quantity& q : result.quantities) {
    if (q.role != "parameter") continue;
    const std::size_t size = q.size() / q.dimensions[0].size;
    out += fmt::format("; {} {}", q.name, list_text(q, entry * size, size));
  }
  return out;
}

void note_unused_samples(const Dataset& result, const Invocation& call) {
  const auto unused = [&](const char* key, const std::string& why) {
    if (call.origins.flag(key)) {
      print_note(fmt::format("{} is not used: {}", key, why), call.quiet);
    }
  };
  const std::string name = result.text("engine");
  const bool sampled = result.flag("engine_sampled");
  if (sampled && result.text("engine_reason").empty()) {
    unused("run.tolerance", "the engine " + name + " takes run.samples");
  }
  if (name != "qmc" && name != "factorised+qmc" && !result.find("excess_risk")) {
    unused("run.randomisations", "the engine is " + name);
  }
  if (!sampled) unused("run.precision", "the engine is " + name);
  if (call.config.run.samples == 0 || sampled) return;
  print_note(fmt::format(
                 "run.samples is not used: the engine {} plans its nodes from run.tolerance", name),
             call.quiet);
}

}  // namespace headflow::cli

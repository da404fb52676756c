#include "model/activation.h"

#include <algorithm>
#include <numbers>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {

// ---- The registry: one line an activation, defined in activations/<name>.cc ----
#define HEADFLOW_ACTIVATIONS(X) \
  X(softmax)                    \
  X(softmax_1)                  \
  X(b_softmax)

#define HEADFLOW_DECLARE(name) const Activation& name();
HEADFLOW_ACTIVATIONS(HEADFLOW_DECLARE)
#undef HEADFLOW_DECLARE

std::span<const Activation* const> activations() {
#define HEADFLOW_ENTRY(name) &name(),
  static const std::vector<const Activation*> all = {HEADFLOW_ACTIVATIONS(HEADFLOW_ENTRY)};
#undef HEADFLOW_ENTRY
  return all;
}

const Activation& find_activation(std::string_view name) {
  std::vector<std::string> names;
  for (const Activation* a : activations()) {
    if (a->info().name == name) return *a;
    names.emplace_back(a->info().name);
  }
  throw OptionError("problem.activation", in_quotes(name), one_of(names, name));
}

void Activation::placements(const PlacementBatch& batch) const {
  const ActivationKernels kernels = kernels_();
  if (kernels.placements && batch.moderate && !batch.second_moment) {
    return kernels.placements(batch);
  }
  const int H = batch.heads, L = batch.tokens, P = batch.placements;
  const auto at = [](double* base, int index) {
    return base + static_cast<std::ptrdiff_t>(index) * kLanes;
  };
  double* u = batch.scratch;
  double* total = at(u, H * L);
  double* state = at(total, H * L);
  double* mean = at(state, H);
  double* s = at(mean, L);
  std::fill_n(total, H * L * kLanes, 0.0);

  for (int p = 0; p < P; ++p) {
    constexpr double ln2 = std::numbers::ln2;
    for (int j = 0; j < H * L * kLanes; ++j) u[j] = batch.chi[j] * ln2;
    for (int h = 0; h < H; ++h) {
      for (int i = 0; i < kLanes; ++i)
        at(u, h * L + p)[i] += batch.mu[(h * P + p) * kLanes + i] * ln2;
    }
    kernels.forward(H, L, batch.b, batch.v, u, state, mean);
    for (int l = 0; l < L; ++l) {
      for (int i = 0; i < kLanes; ++i) {
        const double weight = batch.weight ? batch.weight[p * kLanes + i] : 1.0;
        const double w = (l == p ? 1.0 : 0.0) - at(mean, l)[i];
        batch.loss[i] += weight * w * w;
        at(s, l)[i] = 2.0 * weight * w;
      }
    }
    kernels.backward(H, L, batch.v, s, u, state, batch.grad_b, batch.grad_v);
    for (int j = 0; j < H * L * kLanes; ++j) total[j] += u[j];
    for (int h = 0; h < H; ++h) {
      std::copy_n(at(u, h * L + p), kLanes, batch.g_relevant + (h * P + p) * kLanes);
    }
    if (batch.second_moment) {
      double once[kLanes];  // g has the weight in it already, the product twice
      for (int i = 0; i < kLanes; ++i) {
        const double weight = batch.weight ? batch.weight[p * kLanes + i] : 1.0;
        once[i] = weight > 0 ? 1.0 / weight : 0.0;
      }
      for (int h = 0; h < H; ++h) {
        for (int k = 0; k < H; ++k) {
          double* sum = at(batch.second_moment, h * H + k);
          for (int l = 0; l < L; ++l) {
            const double *gh = at(u, h * L + l), *gk = at(u, k * L + l);
            for (int i = 0; i < kLanes; ++i) sum[i] += gh[i] * gk[i] * once[i];
          }
        }
      }
    }
  }
  std::copy_n(total, H * L * kLanes, batch.chi);
}

}  // namespace headflow

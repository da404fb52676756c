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
  X(b_softmax)                  \
  X(sigmoid)                    \
  /* a new one stands above this line */

#define HEADFLOW_DECLARE(name) std::shared_ptr<const Activation> name();
HEADFLOW_ACTIVATIONS(HEADFLOW_DECLARE)
#undef HEADFLOW_DECLARE

namespace {

std::vector<std::shared_ptr<const Activation>>& registry() {
#define HEADFLOW_ENTRY(name) name(),
  static std::vector<std::shared_ptr<const Activation>> all = {
      HEADFLOW_ACTIVATIONS(HEADFLOW_ENTRY)};
#undef HEADFLOW_ENTRY
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const Activation>> activations() { return registry(); }

void register_activation(std::shared_ptr<const Activation> activation) {
  for (const auto& other : registry()) {
    if (other->name() == activation->name()) {
      throw Error(fmt::format("there is an activation {} already", activation->name()));
    }
  }
  registry().push_back(std::move(activation));
}

std::shared_ptr<const Activation> find_activation(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& a : registry()) {
    if (a->name() == name) return a;
    names.emplace_back(a->name());
  }
  throw OptionError("problem.activation", in_quotes(name), one_of(names, name));
}

void set_initial(Blocks& blocks) {
  for (const BlockLayout::Entry& e : blocks.entries()) {
    blocks[e.info.name].setConstant(e.info.initial(blocks.layout()->sizes()));
  }
}

void Activation::set_origin(double b, Blocks& parameters) const {
  set_initial(parameters);
  if (parameters.entries().empty()) return;
  const BlockLayout::Entry& first = parameters.entries().front();
  if (first.per_head()) parameters[first.info.name].setConstant(b);
}

std::size_t Activation::scratch_groups(const Sizes& sizes) const {
  const auto H = static_cast<std::size_t>(sizes.H), L = static_cast<std::size_t>(sizes.L);
  return 2 * H * L + 2 * H * kMaxPlacements + L * kMaxPlacements + 4 * L + 3 * H + 32 +
         state_groups(sizes);
}

void Activation::placements(const PlacementBatch& batch) const {
  if (batch.moderate && !batch.second_moment && has_fast_placements()) {
    return fast_placements(batch);
  }
  const Sizes& sizes = batch.sizes;
  const int H = sizes.H, L = sizes.L, P = batch.placements;
  double* u = batch.scratch;
  double* total = lanes(u, H * L);
  double* mean = lanes(total, H * L);
  double* s = lanes(mean, L);
  double* state = lanes(s, L);
  std::fill_n(total, H * L * kLanes, 0.0);

  for (int p = 0; p < P; ++p) {
    constexpr double ln2 = std::numbers::ln2;
    for (int j = 0; j < H * L * kLanes; ++j) u[j] = batch.chi[j] * ln2;
    for (int h = 0; h < H; ++h) {
      for (int i = 0; i < kLanes; ++i)
        lanes(u, h * L + p)[i] += batch.mu[(h * P + p) * kLanes + i] * ln2;
    }
    forward(sizes, batch.parameters, u, state, mean);
    for (int l = 0; l < L; ++l) {
      for (int i = 0; i < kLanes; ++i) {
        const double weight = batch.weight ? batch.weight[p * kLanes + i] : 1.0;
        const double w = (l == p ? 1.0 : 0.0) - lanes(mean, l)[i];
        batch.loss[i] += weight * w * w;
        lanes(s, l)[i] = 2.0 * weight * w;
      }
    }
    backward(sizes, batch.parameters, s, u, state, batch.grad);
    for (int j = 0; j < H * L * kLanes; ++j) total[j] += u[j];
    for (int h = 0; h < H; ++h) {
      std::copy_n(lanes(u, h * L + p), kLanes, batch.g_relevant + (h * P + p) * kLanes);
    }
    if (batch.second_moment) {
      double once[kLanes];  // g has the weight in it already, the product twice
      for (int i = 0; i < kLanes; ++i) {
        const double weight = batch.weight ? batch.weight[p * kLanes + i] : 1.0;
        once[i] = weight > 0 ? 1.0 / weight : 0.0;
      }
      for (int h = 0; h < H; ++h) {
        for (int k = 0; k < H; ++k) {
          double* sum = lanes(batch.second_moment, h * H + k);
          for (int l = 0; l < L; ++l) {
            const double *gh = lanes(u, h * L + l), *gk = lanes(u, k * L + l);
            for (int i = 0; i < kLanes; ++i) sum[i] += gh[i] * gk[i] * once[i];
          }
        }
      }
    }
  }
  std::copy_n(total, H * L * kLanes, batch.chi);
}

}  // namespace headflow

#include "model/activation.h"

#include <string>
#include <vector>

#include "core/error.h"
#include "core/registry.h"
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

Registry<Activation>& registry() {
#define HEADFLOW_ENTRY(name) name(),
  static Registry<Activation> all("an activation", {HEADFLOW_ACTIVATIONS(HEADFLOW_ENTRY)});
#undef HEADFLOW_ENTRY
  return all;
}

}  // namespace

std::vector<std::shared_ptr<const Activation>> activations() { return registry().all(); }

void register_activation(std::shared_ptr<const Activation> activation) {
  registry().add(std::move(activation), [](const Activation& a) { return a.name(); });
}

void close_activations() { registry().close(); }

std::shared_ptr<const Activation> find_activation(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& a : activations()) {
    if (a->name() == name) return a;
    names.emplace_back(a->name());
  }
  throw OptionError("problem.activation", in_quotes(name), one_of(names, name));
}

void Activation::forward_groups(const Sizes& sizes, std::size_t groups, const double* parameters,
                                double* u, double* state, double* mean) const {
  const std::ptrdiff_t L = sizes.L, scores = sizes.H * L;
  const auto of_state = static_cast<std::ptrdiff_t>(state_groups(sizes));
  for (std::ptrdiff_t n = 0; n < static_cast<std::ptrdiff_t>(groups); ++n) {
    forward(sizes, parameters, lanes(u, n * scores), lanes(state, n * of_state),
            lanes(mean, n * L));
  }
}

void Activation::backward_groups(const Sizes& sizes, std::size_t groups, const double* parameters,
                                 const double* s, double* u, const double* state,
                                 double* grad) const {
  const std::ptrdiff_t L = sizes.L, scores = sizes.H * L;
  const auto of_state = static_cast<std::ptrdiff_t>(state_groups(sizes));
  for (std::ptrdiff_t n = 0; n < static_cast<std::ptrdiff_t>(groups); ++n) {
    backward(sizes, parameters, lanes(s, n * L), lanes(u, n * scores), lanes(state, n * of_state),
             grad);
  }
}

void set_initial(Blocks& blocks) {
  for (const BlockLayout::Entry& e : blocks.entries()) {
    blocks[e.info.name].setConstant(e.info.initial(blocks.layout()->sizes()));
  }
}

}  // namespace headflow

#include "model/activation.h"

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

}  // namespace headflow

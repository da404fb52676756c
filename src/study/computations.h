#pragma once

// What headflow computes, by name: the program's commands, Python's functions. Each is a function
// of a Config, and says which keys of it matter.

#include <string_view>
#include <vector>

#include "core/context.h"
#include "study/config.h"
#include "study/dataset.h"
#include "study/keys.h"

namespace headflow {

struct Computation {
  std::string_view name;  ///< "fixed-point"
  /// The keys that it depends on: sections ("problem"), keys ("flow.rtol"), beginnings
  /// ("flow.init*"). See keys_of.
  Names keys;
  Dataset (*compute)(const Config& config, const Context& context);
  bool trains = false;  ///< starts a flow, from flow.init
};

const std::vector<Computation>& computations();
/// Throws Error if there is none of that name.
const Computation& find_computation(std::string_view name);

}  // namespace headflow

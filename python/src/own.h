#pragma once

// Activations and priors that are functions of Python.

#include <nanobind/nanobind.h>

#include "study/config.h"

namespace headflow::python {

/// Config.set_own_activation, set_own_prior and set_block.
void bind_own(nanobind::class_<Config>& config);

}  // namespace headflow::python

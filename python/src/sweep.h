#pragma once

// Sweeps, in memory or with their tasks kept in a folder.

#include <nanobind/nanobind.h>

namespace headflow::python {

void bind_sweep(nanobind::module_& module);

}  // namespace headflow::python

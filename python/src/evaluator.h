#pragma once

// Loss and gradient at many points of one problem: an engine whose nodes stay in place.

#include <nanobind/nanobind.h>

namespace headflow::python {

void bind_evaluator(nanobind::module_& module);

}  // namespace headflow::python

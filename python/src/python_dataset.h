#pragma once

// Results in Python: numpy arrays that take over the numbers of a Dataset.

#include <nanobind/nanobind.h>

#include "core/matrix.h"
#include "study/dataset.h"

namespace headflow::python {

namespace nb = nanobind;

/// {"variables": [(name, dimensions, numpy array or list of texts, attributes)], "shapes": of
/// texts, "attributes": {...}}: what xarray shows of the program's file of that result.
nb::object python_dataset(Dataset result);

nb::object python_array(const Matrix& matrix);
nb::object python_array(const Vector& vector);

}  // namespace headflow::python

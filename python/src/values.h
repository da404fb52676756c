#pragma once

// Values of keys, from and to Python.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "study/keys.h"

namespace headflow::python {

namespace nb = nanobind;

using Numbers = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
/// What Python's side (config.py, to_value) makes of a value.
using Given = std::variant<bool, std::int64_t, double, std::string, Names, Numbers>;

Value value_of(const Given& given);
nb::object python_value(const std::optional<Value>& value);
/// Throws Error if there is none of that name.
const Key& key_named(const std::string& name);

}  // namespace headflow::python

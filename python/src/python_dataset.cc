#include "python_dataset.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <utility>

#include "study/variables.h"

namespace headflow::python {
namespace {

/// An array that owns its numbers.
template <class T>
nb::object array_of(std::vector<T> values, const std::vector<std::size_t>& shape) {
  auto* kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), shape.size(), shape.data(), owner));
}

std::vector<std::size_t> shape_of(const Dimensions& dimensions) {
  std::vector<std::size_t> out;
  for (const Dimension& d : dimensions) out.push_back(d.size);
  return out;
}

/// As xarray reads integers some of which are unknown.
std::vector<double> with_nan(const std::vector<std::int64_t>& numbers, std::int64_t unknown) {
  std::vector<double> out;
  out.reserve(numbers.size());
  for (const std::int64_t n : numbers) out.push_back(n == unknown ? NAN : static_cast<double>(n));
  return out;
}

nb::object values_of(Variable& variable) {
  const std::vector<std::size_t> shape = shape_of(variable.dimensions);
  if (auto* texts = std::get_if<std::vector<std::string>>(&variable.values)) {
    return nb::cast(*texts);
  }
  if (auto* numbers = std::get_if<std::vector<double>>(&variable.values)) {
    return array_of(std::move(*numbers), shape);
  }
  auto& integers = std::get<std::vector<std::int64_t>>(variable.values);
  if (variable.unknown) return array_of(with_nan(integers, *variable.unknown), shape);
  return array_of(std::move(integers), shape);
}

nb::tuple names_of(const Dimensions& dimensions) {
  nb::list out;
  for (const Dimension& d : dimensions) out.append(nb::str(d.name.c_str()));
  return nb::tuple(out);
}

}  // namespace

nb::object python_dataset(Dataset result) {
  NamedVariables found = variables_of(std::move(result));
  nb::list variables;
  nb::dict shapes, attributes, out;
  for (Variable& one : found.variables) {
    nb::dict own;
    for (const auto& [name, text] : one.attributes) own[name.c_str()] = nb::cast(text);
    if (std::holds_alternative<std::vector<std::string>>(one.values)) {
      shapes[one.name.c_str()] = nb::tuple(nb::cast(shape_of(one.dimensions)));
    }
    variables.append(nb::make_tuple(one.name, names_of(one.dimensions), values_of(one), own));
  }
  for (const auto& [name, value] : found.attributes) {
    attributes[name.c_str()] = std::visit([](const auto& x) { return nb::cast(x); }, value);
  }
  out["variables"] = variables;
  out["shapes"] = shapes;
  out["attributes"] = attributes;
  return out;
}

nb::object python_array(const Matrix& matrix) {
  return array_of(
      std::vector<double>(matrix.data(), matrix.data() + matrix.size()),
      {static_cast<std::size_t>(matrix.rows()), static_cast<std::size_t>(matrix.cols())});
}

nb::object python_array(const Vector& vector) {
  return array_of(std::vector<double>(vector.data(), vector.data() + vector.size()),
                  {static_cast<std::size_t>(vector.size())});
}

}  // namespace headflow::python

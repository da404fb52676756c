#include "values.h"

#include "core/error.h"
#include "python_dataset.h"

namespace headflow::python {

Value value_of(const Given& given) {
  if (const auto* numbers = std::get_if<Numbers>(&given)) {
    return Matrix(Eigen::Map<const Matrix>(numbers->data(),
                                           static_cast<Eigen::Index>(numbers->shape(0)),
                                           static_cast<Eigen::Index>(numbers->shape(1))));
  }
  return std::visit(
      [](const auto& x) -> Value {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Numbers>) {
          return Matrix();
        } else {
          return x;
        }
      },
      given);
}

nb::object python_value(const std::optional<Value>& value) {
  if (!value) return nb::none();
  if (const auto* matrix = std::get_if<Matrix>(&*value)) return python_array(*matrix);
  return std::visit(
      [](const auto& x) -> nb::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(x)>, Matrix>) {
          return nb::none();
        } else {
          return nb::cast(x);
        }
      },
      *value);
}

const Key& key_named(const std::string& name) {
  if (const Key* key = find_key(name)) return *key;
  throw Error(fmt::format("there is no key {}", name));
}

}  // namespace headflow::python

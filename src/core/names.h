#pragma once

// Choices are enums, and each has one table of names: for configuration files, flags, Python,
// messages and result files. Beside an enum stands
//
//   enum class Spacing { linear, log };
//   template <>
//   inline constexpr Named<Spacing> kNames<Spacing>[] = {{Spacing::linear, "linear"}, ...};
//
// and the functions below work on it. A name that is not in the table is an error wherever it
// comes from.

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.h"
#include "core/suggest.h"

namespace headflow {

template <class E>
struct Named {
  E value;
  std::string_view name;
};

/// Specialised beside each enum.
template <class E>
inline constexpr std::nullptr_t kNames = nullptr;

/// An enum with a table of names.
template <class E>
concept Choice = std::is_enum_v<E> && requires {
  kNames<E>[0].name;
};

template <Choice E>
constexpr std::string_view to_string(E value) {
  for (const Named<E>& one : kNames<E>) {
    if (one.value == value) return one.name;
  }
  return "unknown";
}

template <Choice E>
std::vector<std::string> names_of() {
  std::vector<std::string> out;
  for (const Named<E>& one : kNames<E>) out.emplace_back(one.name);
  return out;
}

template <Choice E>
std::vector<std::string> names_of(const std::vector<E>& values) {
  std::vector<std::string> out;
  for (const E value : values) out.emplace_back(to_string(value));
  return out;
}

template <Choice E>
std::string in_quotes(E value) {
  return in_quotes(to_string(value));
}

/// The choice of that name; throws OptionError for the key if there is none.
template <Choice E>
E from_name(std::string_view key, std::string_view name) {
  for (const Named<E>& one : kNames<E>) {
    if (one.name == name) return one.value;
  }
  throw OptionError(std::string(key), in_quotes(name), one_of(names_of<E>(), name));
}

}  // namespace headflow

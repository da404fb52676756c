#pragma once

// The one table of configuration keys: what each is called, what it is for, and how it is read from
// and written to a Config. Configuration files, command-line flags, help, the recorded provenance,
// Python's keywords and the address of a page all come from it.

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "study/config.h"
#include "study/value.h"

namespace headflow {

struct Key {
  std::string section, name, help;
  ValueKind kind = ValueKind::text;
  Names choices;      ///< the words that it may be, if these are all
  std::string files;  ///< if it is the name of a file: a pattern, "*.nc" or "*"
  /// None if it has no value.
  std::function<std::optional<Value>(const Config&)> get;
  /// Throws OptionError if the value is not of the right kind, or no choice.
  std::function<void(Config&, const Value&)> set;

  std::string full_name() const { return section + "." + name; }
  /// "--sgd.first-run": unambiguous, in every command.
  std::string flag() const;
  /// "--first-run": for commands where no other key has that name.
  std::string short_flag() const;
};

/// The table, made of what activations and priors are registered when it is first asked for.
const std::vector<Key>& keys();
/// The key of that full name ("problem.heads"), or null.
const Key* find_key(std::string_view full_name);
/// Sections, in the order of the table.
const Names& sections();
/// Of sections ("problem"), keys ("flow.rtol") and beginnings ("flow.init*"), in their order.
std::vector<const Key*> keys_of(const Names& chosen);

/// Keys that were given as flags, and their values.
using GivenFlags = std::vector<std::pair<const Key*, Value>>;

/// Where a configuration's values were written: "fig2.toml:3", "--tokens".
class Origins {
 public:
  void set(const std::string& full_name, const std::string& origin) {
    origins_[full_name] = origin;
  }
  /// Empty if the value was not given.
  std::string of(std::string_view full_name) const;
  bool given(std::string_view full_name) const { return !of(full_name).empty(); }
  /// True if it was given as a flag.
  bool flag(std::string_view full_name) const { return of(full_name).starts_with("--"); }

 private:
  std::map<std::string, std::string, std::less<>> origins_;
};

/// The values of some sections, but for the keys `left_out`, as a configuration file that
/// reproduces them: the same text for the same values, and only for them.
std::string config_text(const Config& config, const Names& of_sections, const Names& left_out = {});

}  // namespace headflow

#pragma once

// The one table of configuration keys. Each key is bound to a field of an options struct; the
// table then drives the reading of configuration files, command-line flags, help, messages that
// say where a value was written, and the configuration recorded in result files.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/matrix.h"
#include "core/names.h"

namespace headflow {

/// A value as written in a file or on the command line.
using Value =
    std::variant<std::int64_t, double, bool, std::string, Matrix, std::vector<std::string>>;

enum class ValueKind { integer, number, text, matrix };

struct Key {
  std::string section, name, help;
  ValueKind kind = ValueKind::text;
  /// Throws OptionError if the value is not of the right kind.
  std::function<void(const Value&)> set;
  /// The current value as TOML, empty if it has none.
  std::function<std::string()> show;
  std::vector<std::string> choices = {};  ///< the words that it may be, if these are all

  std::string full_name() const { return section + "." + name; }
  /// "--first-output": every key is also a flag.
  std::string flag() const;
};

class Keys {
 public:
  void add(const std::string& section, const std::string& name, std::string& target,
           const std::string& help);
  /// A text that may also be written as a number: init_time = "last" or 12.5.
  void add_text_or_number(const std::string& section, const std::string& name, std::string& target,
                          const std::string& help);
  void add(const std::string& section, const std::string& name, int& target,
           const std::string& help);
  void add(const std::string& section, const std::string& name, std::int64_t& target,
           const std::string& help);
  void add(const std::string& section, const std::string& name, std::uint64_t& target,
           const std::string& help);
  void add(const std::string& section, const std::string& name, double& target,
           const std::string& help);
  void add(const std::string& section, const std::string& name, std::optional<double>& target,
           const std::string& help);
  void add(const std::string& section, const std::string& name, std::optional<Matrix>& target,
           const std::string& help);
  /// The entry `entry` of a map.
  void add(const std::string& section, const std::string& name, const std::string& entry,
           std::map<std::string, Matrix, std::less<>>& target, const std::string& help);
  /// Names that are checked later.
  void add(const std::string& section, const std::string& name,
           std::optional<std::vector<std::string>>& target, const std::string& help,
           std::vector<std::string> offered);
  /// A choice, by its name.
  template <Choice E>
  void add(const std::string& section, const std::string& name, E& target,
           const std::string& help) {
    add_choice(
        section, name, help, [&target] { return to_string(target); },
        [&target, key = section + "." + name](const std::string& text) {
          target = from_name<E>(key, text);
        },
        names_of<E>());
  }
  /// Several of them, as names.
  template <Choice E>
  void add(const std::string& section, const std::string& name, std::vector<E>& target,
           const std::string& help) {
    add_choices(
        section, name, help,
        [&target] {
          std::vector<std::string> names;
          for (const E one : target) names.emplace_back(to_string(one));
          return names;
        },
        [&target, key = section + "." + name](const std::vector<std::string>& names) {
          std::vector<E> values;
          for (const std::string& one : names) values.push_back(from_name<E>(key, one));
          target = std::move(values);
        },
        names_of<E>());
  }

  const std::vector<Key>& all() const { return keys_; }

  /// Sets a key from a flag or any other text ("2", "1,0;0,1").
  void set_text(const Key& key, const std::string& text, const std::string& origin);
  /// Sets a key; throws OptionError if the value is not of its kind.
  void set(const Key& key, const Value& value, const std::string& origin);
  /// The key of that full name ("problem.heads"), or null.
  const Key* find(std::string_view full_name) const;
  /// Reads a whole TOML file, but for the tables `left_out`; throws Error with file and line for
  /// the first thing wrong.
  void read_file(const std::string& path, const std::vector<std::string>& left_out = {});

  /// Where a key was set ("fig2.toml:3", "--tokens"); empty if nowhere.
  std::string origin(const std::string& full_name) const;

  /// All values of the given sections, but for the keys `left_out`, as a configuration file that
  /// reproduces them.
  std::string toml(const std::vector<std::string>& sections,
                   const std::vector<std::string>& left_out = {}) const;

 private:
  void insert(Key key);
  void add_choice(const std::string& section, const std::string& name, const std::string& help,
                  const std::function<std::string_view()>& get,
                  const std::function<void(const std::string&)>& set,
                  std::vector<std::string> choices);
  /// Names: ["flow", "map"] in a file, or as one text, "flow,map".
  void add_choices(const std::string& section, const std::string& name, const std::string& help,
                   const std::function<std::vector<std::string>()>& get,
                   const std::function<void(const std::vector<std::string>&)>& set,
                   std::vector<std::string> choices);
  const Key* find(std::string_view section, std::string_view name) const;

  std::vector<Key> keys_;
  std::map<std::string, std::string, std::less<>> origins_;
};

/// A value as TOML.
std::string toml_text(const Value& value);

}  // namespace headflow

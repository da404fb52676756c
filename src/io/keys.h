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
  void add(const std::string& section, const std::string& name,
           std::map<std::string, Matrix, std::less<>>& target, const std::string& help);
  /// Names: ["flow", "map"] in a file, or as one text, "flow,map".
  void add(const std::string& section, const std::string& name, std::vector<std::string>& target,
           const std::string& help);

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
  const Key* find(std::string_view section, std::string_view name) const;

  std::vector<Key> keys_;
  std::map<std::string, std::string, std::less<>> origins_;
};

/// A value as TOML.
std::string toml_text(const Value& value);

}  // namespace headflow

#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace headflow {

/// Misuse of the library or of the program: something the caller can put right.
/// Outcomes of a computation (converged, diverged, ...) are not errors; they are
/// enums in the summary a computation returns.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An option has a value that breaks a rule. The key is the name used everywhere
/// ("problem.tokens"), so that a front end can say where the value was written. An empty value
/// means that there is none.
class OptionError : public Error {
 public:
  OptionError(std::string key, std::string value, std::string rule)
      : Error(value.empty() ? fmt::format("{} is missing: {}", key, rule)
                            : fmt::format("{} = {}: {}", key, value, rule)),
        key_(std::move(key)),
        value_(std::move(value)),
        rule_(std::move(rule)) {}

  const std::string& key() const { return key_; }
  const std::string& value() const { return value_; }
  const std::string& rule() const { return rule_; }

 private:
  std::string key_, value_, rule_;
};

/// A file cannot be read or written. The message starts with its name.
class FileError : public Error {
 public:
  FileError(const std::string& path, const std::string& what)
      : Error(fmt::format("{}: {}", path, what)) {}
};

/// A result is not finite: the input is so large that it overflows. Whoever can go on without it
/// (a step that can be made smaller) may.
class NotFinite : public Error {
 public:
  using Error::Error;
};

/// A computation was asked to stop (by its Observer) before it had a result. Not an Error:
/// nothing is wrong, and whoever tries something else after an Error must not do so after this.
class Interrupted : public std::runtime_error {
 public:
  Interrupted() : std::runtime_error("interrupted") {}
};

}  // namespace headflow

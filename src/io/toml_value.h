#pragma once

// TOML into values of keys, with the file and line of what is wrong.

#include <toml++/toml.h>

#include <string>

#include "core/error.h"
#include "study/value.h"

namespace headflow {

/// Throws FileError, or Error with file and line. `text`, if not null, becomes what was read.
toml::table parse_toml(const std::string& path, std::string* text = nullptr);

/// "file.toml:3"
std::string place(const std::string& path, const toml::node& node);
/// As written.
std::string node_text(const toml::node& node);

/// A number, a text, texts in a list, or numbers in a list or in rows of equal length; false
/// otherwise.
bool to_value(const toml::node& node, Value& out);

}  // namespace headflow

#pragma once

// Configuration files.

#include <toml++/toml.h>

#include <string>

#include "study/keys.h"

namespace headflow {

/// Sets the keys of a document that was read from `path`, but for the tables `left_out`, and notes
/// where they were written; throws Error with file and line for the first thing wrong.
void read_config(const toml::table& document, const std::string& path, const Names& left_out,
                 Config& config, Origins& origins);

/// The same of a file, which is read once.
void read_config(const std::string& path, const Names& left_out, Config& config, Origins& origins);

}  // namespace headflow

#pragma once

// Results as netCDF-4 files, which xarray opens: docs/result_format.md.

#include <string>

#include "study/dataset.h"

namespace headflow {

/// A file of all that `variables_of` makes of the result. Throws FileError, and Error if sizes of a
/// dimension differ.
void write_result(const std::string& path, Dataset result);

/// True if the file cannot be read, or its content does not have its checksum.
bool is_damaged(const std::string& path);

/// True if the file is a complete result of this very program version and configuration.
bool is_result_of(const std::string& path, const std::string& configuration);

}  // namespace headflow

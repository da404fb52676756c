#pragma once

// A configuration file with a table [sweep], as it was when it was read: everything that follows
// is computed from this value, whatever becomes of the file.

#include <string>
#include <utility>
#include <vector>

#include "study/keys.h"
#include "study/sweep_plan.h"

namespace headflow {

struct SweepFile {
  std::string path;
  std::string text;  ///< all of it
  SweepPlan plan;
  Config base;              ///< the file and the flags; the axes come on top
  std::string figure;       ///< the file's name, or what it is a part of: [figure] part_of
  std::string drawing;      ///< [figure] drawing, if there is one
  bool keep_tasks = false;  ///< [figure] keep_tasks: statements are measured with its tasks, too
};

/// Reads the file once. A flag wins over the file; beside an axis of the same key it is refused.
/// Throws FileError, and Error with file and line.
SweepFile read_sweep_file(const std::string& path, const GivenFlags& flags = {});
/// The same, and where the values of the file were written.
SweepFile read_sweep_file(const std::string& path, const GivenFlags& flags, Origins& origins);

}  // namespace headflow

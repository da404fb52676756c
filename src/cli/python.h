#pragma once

// The drawing scripts, which are Python: found, and run as other programs.

#include <string>
#include <vector>

namespace headflow::cli {

/// A file or folder that comes with the program ("configs/paper"): beside the folder of the
/// program, in share/headflow there, or in the current folder. Throws Error if there is none.
std::string data_path(const std::string& name);

/// A Python with matplotlib and xarray: $PYTHON, /usr/bin/python3 or python3; empty if there is
/// none.
std::string drawing_python();
/// What to do if there is none.
std::string how_to_draw();

/// Runs a program to its end, all its output on standard error (if not `silent`), and returns its
/// exit code; 127 if it cannot be started.
int run_program(const std::vector<std::string>& arguments, bool silent = false);

}  // namespace headflow::cli

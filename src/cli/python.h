#pragma once

// The drawing scripts, which are Python: found, and run as other programs.

#include <string>
#include <vector>

namespace headflow::cli {

/// A file or folder that comes with the program ("configs/paper"): in $HEADFLOW_SHARE if that is
/// set; else in ../share/headflow as seen from the program, where `make install` puts it; else in
/// the source that the program was built from. Throws Error if there is none. The current folder is
/// not looked at: what lies there is anybody's, and scripts that are found are run.
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

#pragma once

// The package of Python that draws: found, and run as other programs.

#include <string>
#include <vector>

namespace headflow::cli {

/// A file or folder that comes with the program ("configs/paper"): in $HEADFLOW_SHARE if that is
/// set; else in ../share/headflow as seen from the program, where `make install` puts it; else in
/// the source that the program was built from. Throws Error if there is none. The current folder is
/// not looked at: what lies there is anybody's, and what is found is run.
std::string data_path(const std::string& name);

/// A Python, 3.11 or later, with matplotlib and xarray: $PYTHON, /usr/bin/python3 or python3; empty
/// if there is none.
std::string drawing_python();
/// What to do if there is none.
std::string how_to_draw();

/// Runs a module ("headflow.plot") of the package that comes with the program, as run_program does:
/// neither one in the current folder nor one that is installed for this Python takes its place.
int run_module(const std::string& python, const std::string& module,
               const std::vector<std::string>& arguments, bool silent = false);

/// Runs a program to its end, all its output on standard error (if not `silent`), and returns its
/// exit code; 127 if it cannot be started.
int run_program(const std::vector<std::string>& arguments, bool silent = false);

}  // namespace headflow::cli

#pragma once

// Parts of results as text on standard output, and whole results as JSON or files.

#include "cli/command.h"
#include "study/dataset.h"

namespace headflow::cli {

/// Writes the result to result.output if there is one and says so, and prints it as JSON if that
/// was asked for. In JSON, of a dimension `last_of` what is at its end.
void put_out(const Invocation& call, Dataset& result, const std::string& last_of = "");

/// Throws Error if nothing would become of a result that is too much for a terminal.
void require_use_of_result(const Invocation& call);

/// Decimal places worth printing for a number with this error.
int places(double error);

/// The heads' rows of m, the norms of R's, and blocks of the activation, of a result with a point
/// (of entry number `entry` of its first dimension, if there are many).
void print_point(const Dataset& result);
std::string point_text(const Dataset& result, std::size_t entry);

/// Says so if samples were asked for and the engine takes none.
void note_unused_samples(const Dataset& result, const Invocation& call);

}  // namespace headflow::cli

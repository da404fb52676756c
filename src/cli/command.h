#pragma once

// Subcommands. One table (main.cc) drives dispatch and help; each command is one file that
// defines a Command and says which sections of keys become its flags.

#include <string>
#include <vector>

#include "study/keys.h"

namespace headflow::cli {

/// What a command is run with, parsed and with every key set.
struct Invocation {
  Config config;
  Origins origins;         ///< where its values were written
  std::string taken_from;  ///< the file and time that the start was taken from, in words
  std::string command_line;
  std::string file;  ///< configuration file, if one was given
  GivenFlags flags;  ///< keys set by flags
  bool json = false;
  bool quiet = false;
  std::vector<std::string> only;   ///< --only
  std::vector<std::string> names;  ///< positional arguments of a command that takes names
};

enum ExitCode {
  kSuccess = 0,
  kInternalError = 1,
  kBadInput = 2,
  kDiverged = 3,
  kNotAsExpected = 4,
  kInterrupted = 130
};

/// The codes that a user meets, in words; for --help and the manual page.
struct ExitMeaning {
  int code;
  const char* meaning;
};
inline constexpr ExitMeaning kExitMeanings[] = {
    {kSuccess, "done"},
    {kInternalError, "an internal error, or a drawing failed"},
    {kBadInput, "bad input or file"},
    {kDiverged, "the flow diverged, or no end was found"},
    {kNotAsExpected, "a statement is not as expected (verify)"},
    {kInterrupted, "interrupted; what there is was kept"}};

struct Command {
  const char* name;
  const char* summary;                ///< one line, in the list of commands
  const char* description;            ///< what it does, for --help
  std::vector<std::string> sections;  ///< keys that are its flags: "run", "flow.rtol", "flow.init*"
  bool takes_file;                    ///< a configuration file as positional argument
  const char* only;                   ///< help of --only, or null if there is none
  int (*run)(Invocation& call);
  const char* names = nullptr;  ///< help of positional arguments that are no configuration file
  bool prints_json = true;      ///< has --json
  /// What a shell offers for the names: words, or a pattern of files ("*.nc").
  std::vector<std::string> (*offered_names)() = nullptr;
  bool reads_its_file = false;  ///< itself, with tables that are no configuration
};

/// The table of all commands: dispatch, help, shell completion and manual page are made of it.
const std::vector<const Command*>& commands();

/// The keys of the computation of that name (study/computations.h), and those that say where its
/// result goes and with how many threads.
Names keys_of_command(std::string_view name, const std::string& result = "result.output");

/// What a value of each ValueKind is called.
inline constexpr const char* kValueTypes[] = {"INTEGER", "NUMBER", "TEXT", "NUMBERS", "NAMES"};

/// What a key is for, with its default in brackets.
std::string help_of(const Key& key);

/// A flag of a command, as --help shows it.
struct FlagInfo {
  std::string name;  ///< "--init-noise"
  std::string help;  ///< with the default in brackets
  std::string type;  ///< "NUMBER", or empty if it takes no value
  std::string key;   ///< "flow.init_noise", or empty if it is no key
};
std::vector<FlagInfo> flags_of(const Command& command);

/// One line that says what the program is.
inline constexpr const char* kProgramSummary =
    "head specialisation in a solvable model of multi-head attention";

const Command& loss_command();
const Command& bayes_command();
const Command& flow_command();
const Command& sgd_command();
const Command& compare_command();
const Command& hessian_command();
const Command& fixed_point_command();
const Command& minima_command();
const Command& verify_command();
const Command& sweep_command();
const Command& reproduce_command();
const Command& plot_command();
const Command& completion_command();
const Command& man_command();
const Command& prune_command();
const Command& attention_command();
const Command& similarity_command();
const Command& phases_command();

/// take_recorded_start, and remarks on what was given and is not taken, unless quiet.
void settle_start(Invocation& call);

/// Remarks on numbers of [point] that the activation does not have, unless quiet.
void note_unused_point(const Invocation& call);

/// Prints a remark, if there is one, to standard error unless quiet.
void print_note(const std::string& note, bool quiet);

/// Set by Ctrl-C, SIGTERM and SIGHUP after catch_interrupts: computations stop within a second and
/// keep what they have. Before it, or at the second Ctrl-C, the program ends at once.
bool interrupted();
void catch_interrupts();
void stop_at_once_when_interrupted();
/// False a moment after `interrupted`, so that a computation
/// that stops by itself can still say where it is.
bool computations_go_on();

/// A result must not take the place of the configuration it is made from.
void check_apart(const std::string& output, const std::string& file);

}  // namespace headflow::cli

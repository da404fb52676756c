#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <system_error>

#include "cli/command.h"
#include "cli/standard_streams.h"
#include "core/error.h"
#include "core/suggest.h"
#include "io/toml_config.h"
#include "study/computations.h"
#include "study/version.h"

namespace headflow::cli {

void check_apart(const std::string& output, const std::string& file) {
  std::error_code error;
  if (output.empty() || file.empty() || !std::filesystem::equivalent(output, file, error)) return;
  throw FileError(output, "is the configuration itself; choose another file");
}

const std::vector<const Command*>& commands() {
  static const std::vector<const Command*> all = {
      &loss_command(),       &bayes_command(),     &flow_command(),        &sgd_command(),
      &compare_command(),    &hessian_command(),   &fixed_point_command(), &minima_command(),
      &phases_command(),     &prune_command(),     &similarity_command(),  &attention_command(),
      &sweep_command(),      &reproduce_command(), &verify_command(),      &plot_command(),
      &completion_command(), &man_command()};
  return all;
}

Names keys_of_command(std::string_view name, const std::string& result) {
  Names out = find_computation(name).keys;
  out.insert(out.end(), {result, "program"});
  return out;
}

namespace {

struct Flag {
  const Key* key;
  CLI::Option* option;
  std::string text;
};

/// A key's flag in a command: the short form, --dim, where no other of its keys has that name.
std::string flag_in(const std::vector<const Key*>& all, const Key& key) {
  const auto alike = std::ranges::count(all, key.name, [](const Key* k) { return k->name; });
  return alike > 1 ? key.flag() : key.short_flag();
}

/// The long form of every flag is understood, too: --sgd.dim. A short one that stands for several
/// keys is no flag: the message says which there are.
std::string known_form(const std::vector<const Key*>& all, const std::string& argument) {
  const std::string name = argument.substr(0, argument.find('='));
  Names alike;
  for (const Key* key : all) {
    if (name == key->flag()) return flag_in(all, *key) + argument.substr(name.size());
    if (name == key->short_flag()) alike.push_back(key->flag());
  }
  if (alike.size() > 1) {
    throw Error(fmt::format("{} may be {}: give its long form", name, fmt::join(alike, " or ")));
  }
  return argument;
}

/// Flags of a command, bound to the keys of its sections.
std::vector<std::unique_ptr<Flag>> add_flags(CLI::App& app, const Command& command,
                                             Invocation& call, std::string& file) {
  std::vector<std::unique_ptr<Flag>> flags;
  if (command.takes_file) {
    app.add_option("file", file, "Configuration file (TOML); flags win over it")
        ->type_name("FILE.toml");
  }
  if (command.names) app.add_option("names", call.names, command.names)->type_name("NAME ...");
  const std::vector<const Key*> all = keys_of(command.sections);
  for (const Key* key : all) {
    auto flag = std::make_unique<Flag>(Flag{key, nullptr, {}});
    flag->option = app.add_option(flag_in(all, *key), flag->text, help_of(*key))
                       ->type_name(kValueTypes[static_cast<int>(key->kind)])
                       ->group("[" + key->section + "]");
    if (key->kind == ValueKind::names) {
      flag->option->join(',');                      // what is given in several flags,
      if (!command.takes_file && !command.names) {  // or in several words where only they may stand
        flag->option->expected(1, CLI::detail::expected_max_vector_size)->allow_extra_args();
      }
    }
    flags.push_back(std::move(flag));
  }
  if (command.prints_json)
    app.add_flag("--json", call.json, "Print the result as one JSON object on standard output");
  app.add_flag("--quiet", call.quiet, "No progress and no remarks");
  if (command.only) app.add_option("--only", call.only, command.only)->delimiter(',');
  return flags;
}

/// CLI11's complaint about an unknown argument, with a suggestion.
std::string explain(const CLI::ParseError& error, const CLI::App& app,
                    const std::vector<std::string>& arguments) {
  if (!dynamic_cast<const CLI::ExtrasError*>(&error)) return error.what();
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) known.push_back(option->get_name());
  for (const std::string& argument : arguments) {
    const std::string flag = argument.substr(0, argument.find('='));
    if (!flag.starts_with("--") || std::find(known.begin(), known.end(), flag) != known.end())
      continue;
    const std::string hint = closest(known, flag);
    return fmt::format("unknown flag {}{}", shortened(flag),
                       hint.empty() ? "" : fmt::format(" (did you mean {}?)", hint));
  }
  return error.what();
}

constexpr int kReaderGone = 141;  // as if SIGPIPE had ended the program
constexpr const char* kNoOutput = "standard output: cannot be written (is the disk full?)";

int fail(const std::string& message) {
  constexpr std::size_t kLongestMessage = 1500;  // names of files may be of any length
  fmt::print(stderr, "headflow: {}\n", shortened(message, kLongestMessage));
  return kBadInput;
}

/// Standard output failed with this errno. A reader that has seen enough (head) needs no words.
int no_output(int error) { return error == EPIPE ? kReaderGone : fail(kNoOutput); }

void print_overview() {
  fmt::print("headflow {}: {}\n\nusage: headflow COMMAND [FILE.toml] [--flags]\n\ncommands:\n",
             program_version(), kProgramSummary);
  for (const Command* command : commands())
    fmt::print("  {:<12} {}\n", command->name, command->summary);
  fmt::print(
      "\n  headflow COMMAND --help   flags of a command, with their defaults (or: help COMMAND)\n"
      "  headflow --version        version and commit\n\n"
      "Every flag is also a key of the configuration file, in the table named in brackets by\n"
      "--help, and may be written with it (--sgd.dim); a flag wins over the file. Matrices are "
      "written '1,0;0,1' on the command line.\n\n"
      "exit codes:\n");
  for (const auto& [code, meaning] : kExitMeanings) fmt::print("  {:<5}{}\n", code, meaning);
}

int run_command(const Command& command, const std::vector<std::string>& arguments,
                const std::string& command_line) {
  Invocation call;
  call.command_line = command_line;
  CLI::App app(command.description, std::string("headflow ") + command.name);
  std::string file;
  const auto flags = add_flags(app, command, call, file);
  try {
    const std::vector<const Key*> all = keys_of(command.sections);
    std::vector<std::string> reversed;
    for (const std::string& one : arguments) {
      reversed.insert(reversed.begin(), one.starts_with("--") ? known_form(all, one) : one);
    }
    app.parse(reversed);
  } catch (const Error& e) {
    return fail(e.what());
  } catch (const CLI::CallForHelp&) {
    fmt::print("{}", app.help());
    return kSuccess;
  } catch (const CLI::ParseError& e) {
    return fail(explain(e, app, arguments));
  }

  try {
    call.file = file;
    if (!file.empty() && !command.reads_its_file) {  // tables of sweeps are let be
      read_config(file, {"sweep", "figure"}, call.config, call.origins);
    }
    for (const auto& flag : flags) {
      if (flag->option->count() == 0) continue;
      const Value value = parse_value(flag->key->kind, flag->text);
      call.origins.set(flag->key->full_name(), "--" + flag->option->get_lnames().front());
      flag->key->set(call.config, value);
      call.flags.emplace_back(flag->key, value);
    }
    checked_threads(call.config.program.threads);
    check_apart(call.config.result.output, file);
    check_apart(call.config.result.save_init, file);
    return command.run(call);
  } catch (const Interrupted&) {
    fmt::print(stderr,
               "headflow: stopped before there was a result; give the same command again\n");
    return kInterrupted;
  } catch (const std::system_error& e) {  // of a print
    if (std::ferror(stdout)) return no_output(e.code().value());
    return fail(e.what());
  } catch (const OptionError& e) {
    const std::string origin = call.origins.of(e.key());
    return fail(origin.empty() ? e.what() : fmt::format("{}: {}", origin, e.what()));
  } catch (const Error& e) {
    return fail(e.what());
  }
}

int dispatch(const std::vector<std::string>& arguments) {
  const bool help = !arguments.empty() &&
                    (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help");
  if (arguments.empty() || (help && arguments.size() == 1)) {
    print_overview();
    return arguments.empty() ? kBadInput : kSuccess;
  }
  const bool of_help = help && (arguments[1] == "help" || arguments[1].starts_with('-'));
  if (of_help) return dispatch({"help"});
  if (help) return dispatch({arguments[1], "--help"});  // help flow
  if (arguments[0] == "--version") {
    fmt::print("headflow {} ({})\n", program_version(), program_commit());
    return kSuccess;
  }
  std::string line = "headflow";
  for (const std::string& argument : arguments) {
    const bool plain = argument.find_first_of(" ;&|<>()[]$*'\"\\") == std::string::npos;
    line += plain ? " " + argument : " '" + argument + "'";
  }
  std::vector<std::string> names;
  for (const Command* command : commands()) {
    if (arguments[0] == command->name) {
      return run_command(*command, {arguments.begin() + 1, arguments.end()}, line);
    }
    names.emplace_back(command->name);
  }
  const std::string hint = closest(names, arguments[0]);
  return fail(fmt::format("unknown command {}{}; headflow --help lists them",
                          in_quotes(arguments[0]),
                          hint.empty() ? "" : fmt::format(" (did you mean {}?)", in_quotes(hint))));
}

int run(const std::vector<std::string>& arguments) {
  try {
    const int code = dispatch(arguments);
    if (code == kReaderGone) return code;
    errno = 0;
    if (std::fflush(stdout) != 0 || std::ferror(stdout)) return no_output(errno);
    return code;
  } catch (const std::system_error& e) {  // of a print
    return no_output(e.code().value());
  }
}

}  // namespace

void print_note(const std::string& note, bool quiet) {
  if (!quiet && !note.empty()) fmt::print(stderr, "headflow: note: {}\n", note);
}

std::string help_of(const Key& key) {
  const auto value = key.get(Config());
  if (!value || same(*value, std::string())) return key.help;
  return key.help + " [" + value_text(*value) + "]";
}

std::vector<FlagInfo> flags_of(const Command& command) {
  Invocation call;
  std::string file;
  CLI::App app;
  const auto flags = add_flags(app, command, call, file);
  std::vector<FlagInfo> out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) continue;
    FlagInfo info{"--" + option->get_lnames().front(), option->get_description(), "", ""};
    if (option->get_items_expected_max() > 0) info.type = option->get_type_name();
    for (const auto& flag : flags) {
      if (flag->option == option) info.key = flag->key->full_name();
    }
    out.push_back(std::move(info));
  }
  return out;
}

}  // namespace headflow::cli

int main(int argc, char** argv) {
  headflow::protect_standard_streams();
  headflow::cli::stop_at_once_when_interrupted();
  try {
    return headflow::cli::run({argv + std::min(argc, 1), argv + argc});
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "headflow: out of memory; ask for less, or see [program] memory\n");
    return headflow::cli::kBadInput;
  } catch (const std::length_error&) {  // what no memory could hold
    fmt::print(stderr, "headflow: out of memory; ask for less\n");
    return headflow::cli::kBadInput;
  } catch (const std::exception& e) {
    fmt::print(stderr, "headflow: internal error: {}\n", e.what());
    return headflow::cli::kInternalError;
  }
}

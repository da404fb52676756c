// Shell completion, made of the table of commands and their flags.

#include <fmt/format.h>

#include <map>

#include "cli/command.h"
#include "core/error.h"
#include "core/suggest.h"
#include "expectation/engine.h"
#include "model/activation.h"
#include "model/prior.h"
#include "sgd/limit.h"

namespace headflow::cli {
namespace {

using Words = std::vector<std::string>;

/// What a shell offers for a value; "*" is any file.
Words values_of(const FlagInfo& flag) {
  const Key* key = find_key(flag.key);
  if (!key) return {};
  if (!key->files.empty()) return {key->files};
  return flag.key == "flow.init_time" ? Words{"first", "last"} : key->choices;
}

bool are_files(const Words& words) { return words.size() == 1 && words[0].starts_with('*'); }

/// What may stand where no flag does.
Words positionals_of(const Command& command) {
  if (command.offered_names) return command.offered_names();
  return command.takes_file ? Words{"*.toml"} : Words{};
}

std::string join(const Words& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

/// In single quotes, for any of the three shells but fish, where \' is another matter.
std::string zsh_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string with_backslashes(const std::string& text, std::string_view special) {
  std::string out;
  for (const char c : text) {
    if (special.find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

std::string bash_reply(const Words& words) {
  if (!are_files(words)) return fmt::format("words='{}'", join(words));
  return words[0] == "*" ? "files='*'" : fmt::format("files='{}'", words[0]);
}

void print_bash() {
  Words names;
  for (const Command* command : commands()) names.emplace_back(command->name);
  std::string values, flags;
  for (const Command* command : commands()) {
    Words all;
    for (const FlagInfo& flag : flags_of(*command)) {
      all.push_back(flag.name);
      if (flag.type.empty()) continue;
      values += fmt::format("    '{} {}') {} ;;\n", command->name, flag.name,
                            bash_reply(values_of(flag)));
    }
    flags += fmt::format("    '{}') flags='{}'; {} ;;\n", command->name, join(all),
                         bash_reply(positionals_of(*command)));
  }
  fmt::print(R"bash(# bash completion of headflow: eval "$(headflow completion bash)"
_headflow() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local flags='' words='' files=''
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$current"))
    return
  fi
  # --flag=value is three words to bash.
  if [ "$current" = '=' ]; then
    current=''
  elif [ "$before" = '=' ]; then
    before=${{COMP_WORDS[COMP_CWORD-2]}}
  fi
  case "${{COMP_WORDS[1]}} $before" in
{}    *) case "${{COMP_WORDS[1]}}" in
{}    esac ;;
  esac
  case "$current" in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$current")) ;;
    *) COMPREPLY=($(compgen -W "$words" -- "$current"))
      if [ -n "$files" ]; then
        local IFS=$'\n'
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -X "!$files" -- "$current") $(compgen -d -- "$current"))
      fi ;;
  esac
}}
complete -F _headflow headflow
)bash",
             join(names), values, flags);
}

/// What follows the help of an argument of zsh's _arguments.
std::string zsh_action(const Words& words) {
  if (words.empty()) return " ";
  if (!are_files(words)) return fmt::format("({})", join(words));
  return words[0] == "*" ? "_files" : fmt::format("_files -g \"{}\"", words[0]);
}

void print_zsh() {
  std::string names, cases;
  for (const Command* command : commands()) {
    names += fmt::format(
        "    {}\n",
        zsh_quoted(fmt::format("{}:{}", command->name, with_backslashes(command->summary, ":\\"))));
    cases += fmt::format("    {})\n      _arguments \\\n", command->name);
    for (const FlagInfo& flag : flags_of(*command)) {
      std::string spec = fmt::format("{}[{}]", flag.name, with_backslashes(flag.help, "[]:\\"));
      if (!flag.type.empty()) {
        spec = fmt::format("{}:{}:{}", spec, flag.type, zsh_action(values_of(flag)));
      }
      cases += fmt::format("        {} \\\n", zsh_quoted(spec));
    }
    const Words positionals = positionals_of(*command);
    const std::string rest =
        positionals.empty() ? "" : zsh_quoted("*:argument:" + zsh_action(positionals));
    cases += fmt::format("        {} ;;\n", rest);
  }
  fmt::print(R"(#compdef headflow
# zsh completion of headflow: headflow completion zsh > a folder of $fpath/_headflow
_headflow() {{
  local -a names
  names=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command names
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
if [ "$funcstack[1]" = _headflow ]; then
  _headflow "$@"
else
  compdef _headflow headflow
fi
)",
             names, cases);
}

std::string fish_quoted(const std::string& text) {
  return "'" + with_backslashes(text, "'\\") + "'";
}

std::string fish_values(const Words& words) {
  if (are_files(words)) return "-r -F";
  return words.empty() ? "-x" : fmt::format("-x -a {}", fish_quoted(join(words)));
}

void print_fish() {
  fmt::print(
      "# fish completion of headflow: headflow completion fish | source\n"
      "complete -c headflow -f\n");
  for (const Command* command : commands()) {
    fmt::print("complete -c headflow -n __fish_use_subcommand -a {} -d {}\n", command->name,
               fish_quoted(command->summary));
    const std::string where =
        fmt::format("complete -c headflow -n '__fish_seen_subcommand_from {}'", command->name);
    const Words positionals = positionals_of(*command);
    if (are_files(positionals)) {
      fmt::print("{} -F\n", where);
    } else if (!positionals.empty()) {
      fmt::print("{} -a {}\n", where, fish_quoted(join(positionals)));
    }
    for (const FlagInfo& flag : flags_of(*command)) {
      fmt::print("{} -l {} {}-d {}\n", where, flag.name.substr(2),
                 flag.type.empty() ? "" : fish_values(values_of(flag)) + " ",
                 fish_quoted(flag.help));
    }
  }
}

const std::map<std::string, void (*)()> kShells = {
    {"bash", print_bash}, {"fish", print_fish}, {"zsh", print_zsh}};

Words shell_names() {
  Words out;
  for (const auto& [name, print] : kShells) out.push_back(name);
  return out;
}

int run_completion(Invocation& call) {
  if (call.names.size() != 1) {
    throw Error("completion needs the name of a shell: headflow completion bash, fish or zsh");
  }
  const auto found = kShells.find(call.names[0]);
  if (found == kShells.end()) {
    throw Error(fmt::format("completion: {} {}", in_quotes(call.names[0]),
                            one_of(shell_names(), call.names[0])));
  }
  found->second();
  return kSuccess;
}

}  // namespace

const Command& completion_command() {
  static const Command command{
      .name = "completion",
      .summary = "what a shell (bash, fish, zsh) needs to complete commands and flags",
      .description =
          "Prints a script that teaches a shell the commands, their flags and the values these\n"
          "take. `make install` puts it where the shells look for it.\n\n"
          "examples:\n"
          "  eval \"$(headflow completion bash)\"\n"
          "  headflow completion fish | source\n"
          "  headflow completion zsh > ~/.zfunc/_headflow    # a folder of $fpath\n",
      .sections = {},
      .takes_file = false,
      .only = nullptr,
      .run = run_completion,
      .names = "bash, fish or zsh",
      .prints_json = false,
      .offered_names = shell_names};
  return command;
}

}  // namespace headflow::cli

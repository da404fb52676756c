// The manual page, made of the table of commands and keys.

#include <fmt/format.h>

#include <sstream>

#include "cli/command.h"
#include "study/version.h"

namespace headflow::cli {
namespace {

/// Text for troff: its control characters are written as what they look like.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\': out += "\\(rs"; break;
      case '-': out += "\\-"; break;
      case '\'': out += "\\(aq"; break;
      case '`': out += "\\(ga"; break;
      case '^': out += "\\(ha"; break;
      case '~': out += "\\(ti"; break;
      case '"': out += "\\(dq"; break;
      default: out += c;
    }
  }
  return out.starts_with('.') ? "\\&" + out : out;
}

/// Lines that are indented are printed as they are; the others fill paragraphs.
void print_description(const std::string& text) {
  std::istringstream in(text);
  bool as_is = false;
  for (std::string line; std::getline(in, line);) {
    const bool indented = line.starts_with("  ");
    if (indented != as_is) fmt::print("{}\n", indented ? ".PP\n.nf" : ".fi");
    as_is = indented;
    fmt::print("{}\n", line.empty() ? ".PP" : escaped(line));
  }
  if (as_is) fmt::print(".fi\n");
}

void print_flag(const std::string& name, const std::string& type, const std::string& help) {
  fmt::print(".TP\n\\fB{}\\fR{}\n{}\n", escaped(name),
             type.empty() ? "" : fmt::format(" \\fI{}\\fR", escaped(type)), escaped(help));
}

void print_command(const Command& command) {
  fmt::print(".SS headflow {}{}{} [\\-\\-flags]\n{}.\n.PP\n", escaped(command.name),
             command.takes_file ? " [FILE.toml]" : "", command.names ? " [NAME ...]" : "",
             escaped(command.summary));
  print_description(command.description);
  if (command.names) fmt::print(".PP\nNAME: {}.\n", escaped(command.names));
  std::string keys;
  for (const std::string& section : command.sections) {
    const std::string name = section.find('.') == std::string::npos ? "[" + section + "]" : section;
    keys += (keys.empty() ? "" : ", ") + name;
  }
  if (!keys.empty()) fmt::print(".PP\nKeys: {}.\n", escaped(keys));
  for (const FlagInfo& flag : flags_of(command)) {
    const bool everywhere =
        flag.name == "--help" || flag.name == "--json" || flag.name == "--quiet";
    if (flag.key.empty() && !everywhere) print_flag(flag.name, flag.type, flag.help);
  }
}

void print_keys() {
  std::string section;
  for (const Key& key : keys()) {
    if (key.section != section) fmt::print(".SS [{}]\n", escaped(key.section));
    section = key.section;
    print_flag(key.short_flag(), kValueTypes[static_cast<int>(key.kind)], help_of(key));
  }
}

int run_man(Invocation&) {
  // No date: the same program prints the same page.
  fmt::print(
      ".TH HEADFLOW 1 \"\" \"headflow {}\" \"User Commands\"\n"
      ".SH NAME\nheadflow \\- {}\n"
      ".SH SYNOPSIS\n.B headflow\n\\fICOMMAND\\fR [\\fIFILE.toml\\fR] [\\fB\\-\\-flags\\fR]\n"
      ".br\n.B headflow\n\\fICOMMAND\\fR \\fB\\-\\-help\\fR\n.br\n.B headflow \\-\\-version\n"
      ".SH DESCRIPTION\n"
      "Computes losses, gradients and training dynamics of multi\\-head attention in the high\\-"
      "dimensional single\\-location model of Sagitova, Duranthon and Zdeborova (2026), and SGD at "
      "any dimension.\nLosses, gradients and risks come with their error; the same seed gives the "
      "same bits for "
      "any number of threads.\n.PP\n"
      "Every flag that stands under KEYS is also a key of the configuration file (TOML), in the "
      "table in brackets, with _ in place of \\-: \\fB\\-\\-init\\-noise\\fR is init_noise of "
      "[flow].\nIt may be written with its table, \\fB\\-\\-flow.init\\-noise\\fR, and must be in "
      "commands "
      "that take several of that name.\nA flag wins over the file.\nMatrices are written "
      "\\(aq1,0;0,1\\(aq on the command "
      "line.\nThe value in brackets is the default.\n.PP\nCommands take (\\-\\-json: those with a "
      "result to print):\n",
      escaped(program_version()), escaped(kProgramSummary));
  for (const FlagInfo& flag : flags_of(loss_command())) {
    if (flag.key.empty()) print_flag(flag.name, flag.type, flag.help);
  }
  fmt::print(".SH COMMANDS\n");
  for (const Command* command : commands()) print_command(*command);
  fmt::print(".SH KEYS\n");
  print_keys();
  fmt::print(".SH EXIT STATUS\n");
  for (const auto& [code, meaning] : kExitMeanings) {
    fmt::print(".TP\n.B {}\n{}\n", code, escaped(meaning));
  }
  fmt::print(
      ".SH ENVIRONMENT\n"
      ".TP\n.B HEADFLOW_SHARE\nthe folder of python/ and configs/, if not ../share/headflow as "
      "seen from the program, or the source it was built from\n"
      ".TP\n.B PYTHON\nthe Python that draws, 3.11 or later; it needs matplotlib, xarray and "
      "netCDF4\n"
      ".SH SEE ALSO\n"
      "M. Sagitova, O. Duranthon, L. Zdeborova, Specialization of softmax attention heads: "
      "insights "
      "from the high\\-dimensional single\\-location model, arXiv:2603.03993 (2026), "
      "https://arxiv.org/abs/2603.03993v1\n");
  return kSuccess;
}

}  // namespace

const Command& man_command() {
  static const Command command{.name = "man",
                               .summary = "the manual page, for man and troff",
                               .description =
                                   "Prints the manual page. `make install` puts it where man looks "
                                   "for it.\n\nexample:\n  headflow man | man -l -\n",
                               .sections = {},
                               .takes_file = false,
                               .only = nullptr,
                               .run = run_man,
                               .prints_json = false};
  return command;
}

}  // namespace headflow::cli

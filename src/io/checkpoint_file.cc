#include "io/checkpoint_file.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "core/checksum.h"
#include "core/error.h"
#include "io/atomic_file.h"
#include "io/build_identity.h"
#include "io/netcdf_file.h"

namespace headflow {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "headflow checkpoint 3 ";
constexpr std::size_t kHash = 16;                               // hexadecimal digits
constexpr std::size_t kHeader = kMagic.size() + 2 * kHash + 2;  // hash, blank, checksum, newline

/// Damage, as opposed to a checkpoint that is whole but of something else.
struct Damaged {
  std::string what;
};

/// What a checkpoint belongs to: the same numbers come from this program and configuration only.
std::uint64_t owner_hash(const std::string& configuration) {
  Checksum sum;
  sum.add(std::string_view(configuration));
  sum.add(std::string_view(build_identity()));
  return sum.value();
}

std::uint64_t whole_checksum(std::string_view owner, std::string_view content) {
  Checksum sum;
  sum.add(owner);
  sum.add(content);
  return sum.value();
}

std::string hex(std::uint64_t value) { return fmt::format("{:016x}", value); }

bool is_checkpoint(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::array<char, kMagic.size()> begin{};
  return file.read(begin.data(), begin.size()) &&
         std::string_view(begin.data(), begin.size()) == kMagic;
}

/// Throws FileError if the file exists and is no checkpoint, unless the one before it is: what has
/// such a neighbour was a checkpoint.
void require_checkpoint(const std::string& path, const std::string& previous) {
  if (!fs::exists(path) || is_checkpoint(path) || is_checkpoint(previous)) return;
  throw FileError(path,
                  "is not a checkpoint of this version of headflow, or its beginning is damaged; "
                  "move it away to start anew, or choose another result.output");
}

std::vector<char> content_of(const SgdCheckpoint& checkpoint, const std::string& configuration) {
  const auto& recorded = checkpoint.recorded;
  const SgdState& shape = recorded.front().front().state;
  std::vector<double> saved, states, losses;
  for (const auto& run : checkpoint.saved) saved.insert(saved.end(), run.begin(), run.end());
  for (const auto& run : recorded) {
    for (const SgdRecord& record : run) {
      const std::vector<double> numbers = packed(record.state);
      states.insert(states.end(), numbers.begin(), numbers.end());
      losses.insert(losses.end(), {record.loss.mean, record.loss.error});
    }
  }
  NetcdfWriter file;
  file.dimension("run", recorded.size());
  file.dimension("time", recorded.front().size());
  file.dimension("saved", checkpoint.saved.front().size());
  file.dimension("number", packed(shape).size());
  file.dimension("of_loss", 2);  // mean and error
  file.variable("saved", {"run", "saved"}, saved, {});
  file.variable("state", {"run", "time", "number"}, states, {});
  file.variable("loss", {"run", "time", "of_loss"}, losses, {});
  file.attribute("heads", static_cast<double>(shape.heads()));
  file.attribute("features", static_cast<double>(shape.features()));
  file.attribute("configuration", configuration);
  file.attribute("program", build_identity());
  file.attribute("step", static_cast<double>(checkpoint.step));
  return file.content();
}

/// What is in the file, after a look at its checksum. Throws Damaged.
std::vector<char> verified_content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> all{std::istreambuf_iterator<char>(file), {}};
  const std::string_view text(all.data(), all.size());
  if (text.size() < kHeader || !text.starts_with(kMagic)) throw Damaged{"its beginning"};
  const std::string_view owner = text.substr(kMagic.size(), kHash),
                         checksum = text.substr(kMagic.size() + kHash + 1, kHash),
                         content = text.substr(kHeader);
  if (text[kMagic.size() + kHash] != ' ' || text[kHeader - 1] != '\n' ||
      checksum != hex(whole_checksum(owner, content))) {
    throw Damaged{"its checksum does not fit its content"};
  }
  return {content.begin(), content.end()};
}

std::string owner_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string owner(kHash, ' ');
  file.seekg(kMagic.size());
  file.read(owner.data(), kHash);
  return owner;
}

SgdCheckpoint parse(const NetcdfReader& file) {
  SgdCheckpoint out;
  out.step = static_cast<std::int64_t>(file.number("step"));
  const std::size_t runs = file.size("run"), outputs = file.size("time"),
                    size = file.size("number");
  const auto heads = static_cast<int>(file.number("heads")),
             features = static_cast<int>(file.number("features"));
  out.recorded.resize(runs);
  for (std::size_t run = 0; run < runs; ++run) {
    out.saved.push_back(file.values("saved", {"run", "saved"}, {run}));
    const std::vector<double> states = file.values("state", {"run", "time", "number"}, {run}),
                              losses = file.values("loss", {"run", "time", "of_loss"}, {run});
    if (states.size() != outputs * size || losses.size() != outputs * 2) {
      throw Damaged{"the sizes of what was recorded"};
    }
    for (std::size_t i = 0; i < outputs; ++i) {
      const auto from = states.begin() + static_cast<std::ptrdiff_t>(i * size);
      const std::vector<double> numbers(from, from + static_cast<std::ptrdiff_t>(size));
      out.recorded[run].push_back(
          {unpacked(numbers, heads, features), {losses[2 * i], losses[2 * i + 1]}});
    }
  }
  return out;
}

/// Throws Damaged, and FileError if it is of another configuration or program.
SgdCheckpoint read_one(const std::string& path, const std::string& configuration) {
  std::vector<char> content = verified_content(path);
  const bool same_owner = owner_of(path) == hex(owner_hash(configuration));
  const NetcdfReader file(path, std::move(content));
  const bool same_program = file.text("program") == build_identity();
  if (!same_owner || !same_program || file.text("configuration") != configuration) {
    throw FileError(path, fmt::format("is the checkpoint of another {}; delete it to start anew, "
                                      "or choose another result.output",
                                      same_program ? "configuration" : "version of headflow"));
  }
  return parse(file);
}

}  // namespace

std::string checkpoint_path(const std::string& result_path) { return result_path + ".checkpoint"; }
std::string previous_checkpoint_path(const std::string& result_path) {
  return checkpoint_path(result_path) + ".previous";
}

void write_checkpoint(const std::string& result_path, const SgdCheckpoint& checkpoint,
                      const std::string& configuration) {
  const std::string path = checkpoint_path(result_path),
                    previous = previous_checkpoint_path(result_path);
  require_checkpoint(path, previous);
  const std::vector<char> content = content_of(checkpoint, configuration);
  const std::string owner = hex(owner_hash(configuration));
  const std::string header =
      fmt::format("{}{} {}\n", kMagic, owner,
                  hex(whole_checksum(owner, std::string_view(content.data(), content.size()))));
  std::vector<char> all(header.begin(), header.end());
  all.insert(all.end(), content.begin(), content.end());
  std::error_code ignored;
  if (is_checkpoint(path) && (!fs::exists(previous) || is_checkpoint(previous))) {
    fs::rename(path, previous, ignored);
  }
  write_atomically(path, all);
}

FoundCheckpoint read_checkpoint(const std::string& result_path, const std::string& configuration) {
  FoundCheckpoint out;
  const std::string path = checkpoint_path(result_path),
                    previous = previous_checkpoint_path(result_path);
  require_checkpoint(path, previous);
  for (const std::string& one : {path, previous}) {
    if (!fs::exists(one) || (one == previous && !is_checkpoint(one))) continue;
    try {
      out.checkpoint = read_one(one, configuration);
      out.path = one;
      if (!out.trouble.empty()) {
        out.trouble += fmt::format("; going on from the one before it, {}", one);
      }
      return out;
    } catch (const Damaged& damage) {
      out.trouble += fmt::format("{}{} is damaged ({}) and is not used",
                                 out.trouble.empty() ? "" : "; ", one, damage.what);
    }
  }
  if (!out.trouble.empty()) out.trouble += "; starting at the beginning";
  return out;
}

void discard_checkpoints(const std::string& result_path) {
  std::error_code ignored;
  for (const std::string& path :
       {checkpoint_path(result_path), previous_checkpoint_path(result_path)}) {
    if (is_checkpoint(path)) fs::remove(path, ignored);
    remove_leftovers(path);
  }
}

CheckpointStore::CheckpointStore(std::string result_path, std::string configuration, double seconds,
                                 std::function<void(const Sgd&)> start)
    : result_path_(std::move(result_path)),
      configuration_(std::move(configuration)),
      seconds_(seconds),
      start_(std::move(start)),
      lock_(link_target(checkpoint_path(result_path_)) + ".lock", result_path_,
            FileLock::AtEnd::remove) {}

std::optional<SgdStore::Found> CheckpointStore::load(const Context& context) {
  FoundCheckpoint found = read_checkpoint(result_path_, configuration_);
  if (!found.trouble.empty()) context.warn(found.trouble);
  if (!found.checkpoint) return std::nullopt;
  return Found{std::move(*found.checkpoint), std::move(found.path)};
}

void CheckpointStore::started(const Sgd& runs) {
  if (start_) start_(runs);
}

void CheckpointStore::save(const SgdCheckpoint& checkpoint) {
  write_checkpoint(result_path_, checkpoint, configuration_);
}

}  // namespace headflow

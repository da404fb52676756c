#pragma once

// Checkpoints of SGD, beside the result file: what a run that was killed goes on from. The file is
// a line that says what it is, with a hash of the configuration and program it belongs to and a
// checksum of everything, and then netCDF. A damaged one is never used; the one before it is kept.

#include <optional>
#include <string>

#include "io/file_lock.h"
#include "sgd/runs.h"

namespace headflow {

/// "run.nc" -> "run.nc.checkpoint", and the one before: "run.nc.checkpoint.previous".
std::string checkpoint_path(const std::string& result_path);
std::string previous_checkpoint_path(const std::string& result_path);

/// Throws FileError, also if there is a file of this name that is no checkpoint: it is not touched.
void write_checkpoint(const std::string& result_path, const SgdCheckpoint& checkpoint,
                      const std::string& configuration);

struct FoundCheckpoint {
  std::optional<SgdCheckpoint> checkpoint;  ///< none: start at the beginning
  std::string path;                         ///< of that checkpoint
  std::string trouble;  ///< what is damaged and what is done instead; empty: nothing is
};

/// The last checkpoint that is whole. Throws FileError if it is of another configuration or
/// program, or if a file of this name is no checkpoint.
FoundCheckpoint read_checkpoint(const std::string& result_path, const std::string& configuration);

/// Removes the checkpoints of a result, and nothing that is not one.
void discard_checkpoints(const std::string& result_path);

/// Checkpoints beside a result, for one process at a time. Throws Error if another one is at work.
class CheckpointStore final : public SgdStore {
 public:
  /// `start` is called once, when the start is recorded.
  CheckpointStore(std::string result_path, std::string configuration, double seconds,
                  std::function<void(const Sgd&)> start = {});

  std::optional<Found> load(const Context& context) override;
  void started(const Sgd& runs) override;
  void save(const SgdCheckpoint& checkpoint) override;
  double seconds() const override { return seconds_; }

 private:
  std::string result_path_, configuration_;
  double seconds_;
  std::function<void(const Sgd&)> start_;
  FileLock lock_;
};

}  // namespace headflow

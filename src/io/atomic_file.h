#pragma once

#include <span>
#include <string>

namespace headflow {

/// Throws FileError if a file could not be written there: a missing folder, no permission, or a
/// path that is a folder or a device. Call it before a long computation.
void check_writable(const std::string& path);

/// Writes to a temporary name beside the file, flushes to disk, and renames: at any moment the
/// path holds the old content or the new, never a part. On failure throws FileError and leaves
/// nothing behind.
void write_atomically(const std::string& path, std::span<const char> content);

/// Removes the temporary files that killed writers of this path have left.
void remove_leftovers(const std::string& path);

}  // namespace headflow

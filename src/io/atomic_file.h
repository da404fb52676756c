#pragma once

#include <span>
#include <string>

namespace headflow {

/// Where a chain of symbolic links leads, whether there is a file or not: the path itself if it is
/// no link.
std::string link_target(const std::string& path);

/// Throws FileError if a file could not be written there: a missing folder, no permission, a name
/// that is too long, or a path that is a folder, a device or a pipe. Call it before a long
/// computation.
void check_writable(const std::string& path);

/// Writes to a temporary name beside the file, flushes to disk, and renames: at any moment the
/// path holds the old content or the new, never a part. A symbolic link is followed: what it names
/// is replaced, the link stays. On failure throws FileError and leaves nothing behind; what killed
/// writers of this path have left is removed.
void write_atomically(const std::string& path, std::span<const char> content);

/// Removes the temporary files that killed writers of this path have left, and nothing else: they
/// have names of their own (NAME.headflow-tmp-XXXXXX), and a living writer holds a lock.
void remove_leftovers(const std::string& path);

}  // namespace headflow

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/content_checksum.h"

namespace headflow {

/// A netCDF-4 file built in memory and then written atomically.
class NetcdfWriter {
 public:
  NetcdfWriter();
  ~NetcdfWriter();
  NetcdfWriter(const NetcdfWriter&) = delete;
  NetcdfWriter& operator=(const NetcdfWriter&) = delete;

  using Attributes = std::vector<std::pair<std::string, std::string>>;

  void dimension(const std::string& name, std::size_t size);
  /// Values in row-major order of the named dimensions. `unknown`, if it is given, is an integer
  /// that stands for what is not known: the variable's _FillValue.
  void variable(const std::string& name, const std::vector<std::string>& dimensions,
                const std::vector<double>& values, const Attributes& attributes);
  void variable(const std::string& name, const std::vector<std::string>& dimensions,
                const std::vector<std::int64_t>& values, const Attributes& attributes,
                std::optional<std::int64_t> unknown = {});
  void variable(const std::string& name, const std::vector<std::string>& dimensions,
                const std::vector<std::string>& values, const Attributes& attributes);

  void attribute(const std::string& name, const std::string& value);
  void attribute(const std::string& name, double value);
  void attribute(const std::string& name, std::int64_t value);
  void attribute(const std::string& name, std::uint64_t value);

  /// Adds the attribute `checksum` over all variables: names, shapes and values. Throws FileError.
  /// The writer is spent afterwards.
  void write(const std::string& path);
  /// What `write` would write.
  std::vector<char> content();

 private:
  int define(const std::string& name, const std::vector<std::string>& dimensions, int type,
             const Attributes& attributes);
  int id_ = -1;
  ContentChecksum checksum_;
};

/// A netCDF file opened for reading: a regular file, never an address. Everything throws FileError,
/// naming the file. No more memory is taken than the file is large, whatever sizes it claims.
/// Dimensions that older formats called otherwise (head, head2) go by their names of today.
class NetcdfReader {
 public:
  explicit NetcdfReader(const std::string& path);
  /// A file that is in memory already; `path` is for messages.
  NetcdfReader(const std::string& path, std::vector<char> content);
  ~NetcdfReader();
  NetcdfReader(const NetcdfReader&) = delete;
  NetcdfReader& operator=(const NetcdfReader&) = delete;

  /// Global attributes; empty text and 0 if there is none such.
  std::string text(const std::string& name) const;
  double number(const std::string& name) const;

  /// Throws FileError if the variables are not those that the file's checksum is of. False if the
  /// file has no checksum: another program has made it, or an older version of this one.
  bool verify() const;

  bool has(const std::string& variable) const;
  /// Size of a dimension.
  std::size_t size(const std::string& dimension) const;
  /// The part of a variable at the given first indices, rows first: all of it if none are given.
  /// The variable must have exactly these dimensions, in this order.
  std::vector<double> values(const std::string& variable,
                             const std::vector<std::string>& dimensions,
                             const std::vector<std::size_t>& at = {}) const;

 private:
  [[noreturn]] void fail(const std::string& what) const;
  /// False if the variable cannot be read.
  bool add_to(ContentChecksum& sum, int variable) const;
  std::string path_;
  std::vector<char> content_;  ///< of a file in memory
  std::uintmax_t bytes_ = 0;   ///< size of the file
  int id_ = -1;
};

/// Text of a global attribute, empty if the file is missing, is not netCDF or has none such.
std::string read_attribute(const std::string& path, const std::string& name);

}  // namespace headflow

#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

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
  /// Values in row-major order of the named dimensions.
  void variable(const std::string& name, const std::vector<std::string>& dimensions,
                const std::vector<double>& values, const Attributes& attributes);
  void variable(const std::string& name, const std::vector<std::string>& dimensions,
                const std::vector<int>& values, const Attributes& attributes);

  void attribute(const std::string& name, const std::string& value);
  void attribute(const std::string& name, double value);
  void attribute(const std::string& name, long long value);

  /// Throws FileError. The writer is spent afterwards.
  void write(const std::string& path);

 private:
  int define(const std::string& name, const std::vector<std::string>& dimensions, int type,
             const Attributes& attributes);
  int id_ = -1;
};

/// Text of a global attribute, empty if the file is missing, is not netCDF or has none such.
std::string read_attribute(const std::string& path, const std::string& name);

}  // namespace headflow

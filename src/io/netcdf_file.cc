#include "io/netcdf_file.h"

#include <netcdf.h>
#include <netcdf_mem.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "core/error.h"
#include "io/atomic_file.h"

namespace headflow {
namespace {

void require(int status) {
  if (status != NC_NOERR) throw Error(fmt::format("netCDF: {}", nc_strerror(status)));
}

/// What a dimension was called before format version 2; empty: the same.
std::string former_name(const std::string& dimension) {
  if (dimension == "attention_head") return "head";
  if (dimension == "other_head") return "head2";
  return "";
}

}  // namespace

NetcdfWriter::NetcdfWriter() { require(nc_create_mem("result", NC_NETCDF4, 1 << 16, &id_)); }

NetcdfWriter::~NetcdfWriter() {
  if (id_ >= 0) nc_abort(id_);
}

void NetcdfWriter::dimension(const std::string& name, std::size_t size) {
  int dimension = 0;
  require(nc_def_dim(id_, name.c_str(), size, &dimension));
}

int NetcdfWriter::define(const std::string& name, const std::vector<std::string>& dimensions,
                         int type, const Attributes& attributes) {
  std::vector<int> ids(dimensions.size());
  for (std::size_t i = 0; i < ids.size(); ++i) {
    require(nc_inq_dimid(id_, dimensions[i].c_str(), &ids[i]));
  }
  int variable = 0;
  require(nc_def_var(id_, name.c_str(), type, static_cast<int>(ids.size()), ids.data(), &variable));
  for (const auto& [key, text] : attributes) {
    require(nc_put_att_text(id_, variable, key.c_str(), text.size(), text.c_str()));
  }
  return variable;
}

void NetcdfWriter::variable(const std::string& name, const std::vector<std::string>& dimensions,
                            const std::vector<double>& values, const Attributes& attributes) {
  require(nc_put_var_double(id_, define(name, dimensions, NC_DOUBLE, attributes), values.data()));
}

void NetcdfWriter::variable(const std::string& name, const std::vector<std::string>& dimensions,
                            const std::vector<int>& values, const Attributes& attributes) {
  require(nc_put_var_int(id_, define(name, dimensions, NC_INT, attributes), values.data()));
}

void NetcdfWriter::variable(const std::string& name, const std::vector<std::string>& dimensions,
                            const std::vector<std::int64_t>& values, const Attributes& attributes) {
  const std::vector<long long> numbers(values.begin(), values.end());
  require(nc_put_var_longlong(id_, define(name, dimensions, NC_INT64, attributes), numbers.data()));
}

void NetcdfWriter::variable(const std::string& name, const std::vector<std::string>& dimensions,
                            const std::vector<std::string>& values, const Attributes& attributes) {
  std::vector<const char*> text;
  for (const std::string& value : values) text.push_back(value.c_str());
  require(nc_put_var_string(id_, define(name, dimensions, NC_STRING, attributes), text.data()));
}

void NetcdfWriter::whole_variable(const std::string& name,
                                  const std::vector<std::string>& dimensions,
                                  const std::vector<double>& values, const Attributes& attributes) {
  constexpr int fill = NC_FILL_INT;
  std::vector<int> numbers;
  for (const double x : values) numbers.push_back(std::isnan(x) ? fill : static_cast<int>(x));
  const int id = define(name, dimensions, NC_INT, attributes);
  if (std::ranges::count(numbers, fill) > 0) require(nc_def_var_fill(id_, id, NC_FILL, &fill));
  require(nc_put_var_int(id_, id, numbers.data()));
}

void NetcdfWriter::attribute(const std::string& name, const std::string& value) {
  require(nc_put_att_text(id_, NC_GLOBAL, name.c_str(), value.size(), value.c_str()));
}

void NetcdfWriter::attribute(const std::string& name, double value) {
  require(nc_put_att_double(id_, NC_GLOBAL, name.c_str(), NC_DOUBLE, 1, &value));
}

void NetcdfWriter::attribute(const std::string& name, long long value) {
  require(nc_put_att_longlong(id_, NC_GLOBAL, name.c_str(), NC_INT64, 1, &value));
}

void NetcdfWriter::attribute(const std::string& name, std::uint64_t value) {
  const unsigned long long number = value;
  require(nc_put_att_ulonglong(id_, NC_GLOBAL, name.c_str(), NC_UINT64, 1, &number));
}

void NetcdfWriter::write(const std::string& path) {
  NC_memio memory{};
  const int id = std::exchange(id_, -1);
  require(nc_close_memio(id, &memory));
  const std::unique_ptr<void, decltype(&std::free)> owner(memory.memory, &std::free);
  write_atomically(path, {static_cast<const char*>(memory.memory), memory.size});
}

NetcdfReader::NetcdfReader(const std::string& path) : path_(path) {
  const int status = nc_open(path.c_str(), NC_NOWRITE, &id_);
  if (status > 0) fail(fmt::format("cannot be read: {}", nc_strerror(status)));  // the system's
  if (status != NC_NOERR) fail(fmt::format("is not a netCDF file ({})", nc_strerror(status)));
}

NetcdfReader::~NetcdfReader() { nc_close(id_); }

void NetcdfReader::fail(const std::string& what) const { throw FileError(path_, what); }

std::string NetcdfReader::text(const std::string& name) const {
  std::size_t size = 0;
  nc_type type = NC_NAT;
  if (nc_inq_att(id_, NC_GLOBAL, name.c_str(), &type, &size) != NC_NOERR || type != NC_CHAR) {
    return "";
  }
  std::string value(size, ' ');
  if (nc_get_att_text(id_, NC_GLOBAL, name.c_str(), value.data()) != NC_NOERR) return "";
  return value;
}

double NetcdfReader::number(const std::string& name) const {
  std::size_t size = 0;
  double value = 0;
  if (nc_inq_attlen(id_, NC_GLOBAL, name.c_str(), &size) != NC_NOERR || size != 1 ||
      nc_get_att_double(id_, NC_GLOBAL, name.c_str(), &value) != NC_NOERR) {
    return 0;
  }
  return value;
}

bool NetcdfReader::has(const std::string& variable) const {
  int ignored = 0;
  return nc_inq_varid(id_, variable.c_str(), &ignored) == NC_NOERR;
}

std::size_t NetcdfReader::size(const std::string& dimension) const {
  int id = 0;
  std::size_t length = 0;
  if ((nc_inq_dimid(id_, dimension.c_str(), &id) != NC_NOERR &&
       nc_inq_dimid(id_, former_name(dimension).c_str(), &id) != NC_NOERR) ||
      nc_inq_dimlen(id_, id, &length) != NC_NOERR) {
    fail(fmt::format("has no dimension {}", dimension));
  }
  return length;
}

std::vector<double> NetcdfReader::values(const std::string& variable,
                                         const std::vector<std::string>& dimensions,
                                         const std::vector<std::size_t>& at) const {
  int id = 0, rank = 0;
  if (nc_inq_varid(id_, variable.c_str(), &id) != NC_NOERR ||
      nc_inq_varndims(id_, id, &rank) != NC_NOERR) {
    fail(fmt::format("has no variable {}", variable));
  }
  std::vector<int> ids(static_cast<std::size_t>(rank));
  bool fits = nc_inq_vardimid(id_, id, ids.data()) == NC_NOERR && ids.size() == dimensions.size();
  std::size_t total = 1;
  std::vector<std::size_t> start(at), count(at.size(), 1);
  start.resize(dimensions.size(), 0);
  for (std::size_t i = 0; fits && i < ids.size(); ++i) {
    char name[NC_MAX_NAME + 1];
    std::size_t length = 0;
    fits = nc_inq_dim(id_, ids[i], name, &length) == NC_NOERR &&
           (name == dimensions[i] || name == former_name(dimensions[i]));
    if (i >= at.size()) {
      count.push_back(length);
      total *= length;
    } else if (at[i] >= length) {
      fail(fmt::format("has only {} of {}", length, dimensions[i]));
    }
  }
  if (!fits) {
    fail(fmt::format("variable {} must have the dimensions {}", variable,
                     fmt::join(dimensions, ", ")));
  }
  std::vector<double> out(total);
  const int status = nc_get_vara_double(id_, id, start.data(), count.data(), out.data());
  if (status != NC_NOERR) {
    fail(fmt::format("variable {} cannot be read ({})", variable, nc_strerror(status)));
  }
  return out;
}

std::string read_attribute(const std::string& path, const std::string& name) {
  int id = 0;
  if (nc_open(path.c_str(), NC_NOWRITE, &id) != NC_NOERR) return "";
  std::size_t size = 0;
  std::string value;
  if (nc_inq_attlen(id, NC_GLOBAL, name.c_str(), &size) == NC_NOERR) {
    value.resize(size);
    if (nc_get_att_text(id, NC_GLOBAL, name.c_str(), value.data()) != NC_NOERR) value.clear();
  }
  nc_close(id);
  return value;
}

}  // namespace headflow

#include "io/netcdf_file.h"

#include <netcdf.h>
#include <netcdf_mem.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>

#include "core/error.h"
#include "io/atomic_file.h"

namespace headflow {
namespace {

void require(int status) {
  if (status != NC_NOERR) throw Error(fmt::format("netCDF: {}", nc_strerror(status)));
}

std::vector<std::size_t> shape_of(int file, int variable) {
  int rank = 0;
  if (nc_inq_varndims(file, variable, &rank) != NC_NOERR) return {};
  std::vector<int> ids(static_cast<std::size_t>(rank));
  std::vector<std::size_t> shape(ids.size());
  require(nc_inq_vardimid(file, variable, ids.data()));
  for (std::size_t i = 0; i < ids.size(); ++i) require(nc_inq_dimlen(file, ids[i], &shape[i]));
  return shape;
}

/// What a dimension was called before format version 2; empty: the same.
std::string former_name(const std::string& dimension) {
  if (dimension == "attention_head") return "head";
  if (dimension == "other_head") return "head2";
  return "";
}

/// Values that may be read at once of a file that is smaller (its values may be compressed).
constexpr std::size_t kMostValues = std::size_t{1} << 20;

/// The absolute name of a regular file, "" if there is none. netCDF takes http://... and the like
/// for addresses; what begins with a slash it takes for a file.
std::string local_file(const std::string& path, std::error_code& error) {
  const std::filesystem::path found = std::filesystem::canonical(path, error);
  if (error || !std::filesystem::is_regular_file(found, error)) return "";
  return found.string();
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
  const int variable = define(name, dimensions, NC_DOUBLE, attributes);
  require(nc_put_var_double(id_, variable, values.data()));
  checksum_.add(name, shape_of(id_, variable), values);
}

void NetcdfWriter::variable(const std::string& name, const std::vector<std::string>& dimensions,
                            const std::vector<std::int64_t>& values, const Attributes& attributes,
                            std::optional<std::int64_t> unknown) {
  const std::vector<long long> numbers(values.begin(), values.end());
  const int variable = define(name, dimensions, NC_INT64, attributes);
  if (unknown) {
    const long long fill = *unknown;
    require(nc_def_var_fill(id_, variable, NC_FILL, &fill));
  }
  require(nc_put_var_longlong(id_, variable, numbers.data()));
  checksum_.add(name, shape_of(id_, variable), values);
}

void NetcdfWriter::variable(const std::string& name, const std::vector<std::string>& dimensions,
                            const std::vector<std::string>& values, const Attributes& attributes) {
  std::vector<const char*> text;
  for (const std::string& value : values) text.push_back(value.c_str());
  const int variable = define(name, dimensions, NC_STRING, attributes);
  require(nc_put_var_string(id_, variable, text.data()));
  checksum_.add(name, shape_of(id_, variable), values);
}

void NetcdfWriter::attribute(const std::string& name, const std::string& value) {
  require(nc_put_att_text(id_, NC_GLOBAL, name.c_str(), value.size(), value.c_str()));
}

void NetcdfWriter::attribute(const std::string& name, double value) {
  require(nc_put_att_double(id_, NC_GLOBAL, name.c_str(), NC_DOUBLE, 1, &value));
}

void NetcdfWriter::attribute(const std::string& name, std::int64_t value) {
  const long long number = value;
  require(nc_put_att_longlong(id_, NC_GLOBAL, name.c_str(), NC_INT64, 1, &number));
}

void NetcdfWriter::attribute(const std::string& name, std::uint64_t value) {
  const unsigned long long number = value;
  require(nc_put_att_ulonglong(id_, NC_GLOBAL, name.c_str(), NC_UINT64, 1, &number));
}

std::vector<char> NetcdfWriter::content() {
  attribute("checksum", checksum_.text());
  NC_memio memory{};
  const int id = std::exchange(id_, -1);
  require(nc_close_memio(id, &memory));
  const std::unique_ptr<void, decltype(&std::free)> owner(memory.memory, &std::free);
  const auto* bytes = static_cast<const char*>(memory.memory);
  return {bytes, bytes + memory.size};
}

void NetcdfWriter::write(const std::string& path) { write_atomically(path, content()); }

NetcdfReader::NetcdfReader(const std::string& path) : path_(path) {
  std::error_code error;
  const std::string local = local_file(path, error);
  if (local.empty()) {
    fail(error ? fmt::format("cannot be read: {}", error.message()) : "is not a regular file");
  }
  bytes_ = std::filesystem::file_size(local, error);
  const int status = nc_open(local.c_str(), NC_NOWRITE, &id_);
  if (status > 0) fail(fmt::format("cannot be read: {}", nc_strerror(status)));  // the system's
  if (status != NC_NOERR) fail(fmt::format("is not a netCDF file ({})", nc_strerror(status)));
}

NetcdfReader::NetcdfReader(const std::string& path, std::vector<char> content)
    : path_(path), content_(std::move(content)), bytes_(content_.size()) {
  const int status = nc_open_mem("result", NC_NOWRITE, content_.size(), content_.data(), &id_);
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
  if (size > bytes_) return "";
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

bool NetcdfReader::add_to(ContentChecksum& sum, int variable) const {
  char name[NC_MAX_NAME + 1] = {};
  nc_type type = NC_NAT;
  std::size_t bytes = 0;
  if (nc_inq_varname(id_, variable, name) != NC_NOERR ||
      nc_inq_vartype(id_, variable, &type) != NC_NOERR ||
      nc_inq_type(id_, type, nullptr, &bytes) != NC_NOERR) {
    return false;
  }
  const std::vector<std::size_t> shape = shape_of(id_, variable);
  // Sizes that are not those of the file's content are not to be trusted with memory.
  double total = 1;
  for (const std::size_t n : shape) total *= static_cast<double>(n);
  const double most = static_cast<double>(std::max<std::uintmax_t>(kMostValues * 8, bytes_));
  if (total * static_cast<double>(bytes) > most) return false;
  const auto count = static_cast<std::size_t>(total);
  if (type == NC_STRING) {
    std::vector<char*> texts(count);
    if (nc_get_var_string(id_, variable, texts.data()) != NC_NOERR) return false;
    std::vector<std::string_view> views;
    for (const char* text : texts) views.emplace_back(text ? text : "");
    sum.add(name, shape, views);
    nc_free_string(count, texts.data());
  } else {
    std::vector<double> values(count);
    if (nc_get_var_double(id_, variable, values.data()) != NC_NOERR) return false;
    sum.add(name, shape, values);
  }
  return true;
}

bool NetcdfReader::verify() const {
  const std::string wanted = text("checksum");
  if (wanted.empty()) return false;
  int count = 0;
  ContentChecksum found;
  bool good = nc_inq_nvars(id_, &count) == NC_NOERR;
  for (int i = 0; good && i < count; ++i) good = add_to(found, i);
  if (!good || found.text() != wanted) {
    fail(
        "its content is not what its checksum is of: the file is damaged, or another program has "
        "changed it. If the change is meant, delete its attribute checksum");
  }
  return true;
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
  const std::size_t most = std::max<std::size_t>(kMostValues, bytes_ / sizeof(double));
  std::vector<std::size_t> start(at), count(at.size(), 1);
  start.resize(dimensions.size(), 0);
  for (std::size_t i = 0; fits && i < ids.size(); ++i) {
    char name[NC_MAX_NAME + 1];
    std::size_t length = 0;
    fits = nc_inq_dim(id_, ids[i], name, &length) == NC_NOERR &&
           (name == dimensions[i] || name == former_name(dimensions[i]));
    if (i >= at.size()) {
      count.push_back(length);
      if (length > 0 && total > most / length) {
        fail(fmt::format("variable {} claims to be larger than the file", variable));
      }
      total *= length;
    } else if (at[i] >= length) {
      fail(fmt::format("has only {} of {}", length, dimensions[i]));
    }
  }
  if (!fits) {
    fail(fmt::format("variable {} must have the dimensions {}", variable,
                     fmt::join(dimensions, ", ")));
  }
  // A chunk is read as a whole.
  int storage = NC_CONTIGUOUS;
  std::vector<std::size_t> chunks(ids.size(), 1);
  if (nc_inq_var_chunking(id_, id, &storage, chunks.data()) == NC_NOERR && storage == NC_CHUNKED) {
    double values = 1;
    for (const std::size_t length : chunks) values *= static_cast<double>(length);
    if (values > static_cast<double>(most)) {
      fail(fmt::format("variable {} has chunks that are larger than the file", variable));
    }
  }
  std::vector<double> out(total);
  const int status = nc_get_vara_double(id_, id, start.data(), count.data(), out.data());
  if (status != NC_NOERR) {
    fail(fmt::format("variable {} cannot be read ({})", variable, nc_strerror(status)));
  }
  return out;
}

std::string read_attribute(const std::string& path, const std::string& name) {
  try {
    return NetcdfReader(path).text(name);
  } catch (const FileError&) {
    return "";
  }
}

}  // namespace headflow

// Names of axes become dimensions of a netCDF file and attributes of an xarray.Dataset.

#include <algorithm>
#include <string_view>

#include "core/error.h"
#include "core/suggest.h"
#include "study/check_plan.h"
#include "study/measure_info.h"

namespace headflow {
namespace {

constexpr std::size_t kLongestName = 100;

// What data.NAME is in xarray, whatever the file has: a variable of that name could not be reached
// so.
constexpr std::string_view kTakenByXarray =
    " all any apply argmax argmin argsort as_numpy assign assign_attrs assign_coords astype"
    " attrs bfill broadcast_equals broadcast_like chunk chunks chunksizes clip close coarsen"
    " combine_first compute conj conjugate convert_calendar coords copy count cumprod cumsum"
    " cumulative_integrate curvefit data_vars diff differentiate dims drop drop_dims"
    " drop_duplicates drop_indexes drop_isel drop_sel drop_vars dropna dtypes dump_to_store"
    " encoding equals expand_dims ffill fillna filter_by_attrs from_dataframe from_dict get"
    " get_index groupby groupby_bins head identical idxmax idxmin imag indexes info integrate"
    " interp interp_calendar interp_like interpolate_na isel isin isnull items keys load"
    " load_store loc map map_blocks max mean median merge min nbytes notnull pad persist pipe"
    " plot polyfit prod quantile query rank real reduce reindex reindex_like rename"
    " rename_dims rename_vars reorder_levels resample reset_coords reset_index roll rolling"
    " rolling_exp round sel set_close set_coords set_index set_xindex shift sizes sortby"
    " squeeze stack std sum swap_dims tail thin to_array to_dask_dataframe to_dataframe"
    " to_dict to_netcdf to_pandas to_stacked_array to_zarr transpose unify_chunks unstack"
    " update values var variables weighted where xindexes ";

/// A name that would do.
std::string better(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += good ? c : '_';
  }
  return out == name ? name + "_axis" : out;
}

}  // namespace

void check_axis_name(const std::string& name, const Measures& measures) {
  const auto refuse = [&](const std::string& why) {
    throw Error(fmt::format("an axis cannot be called {}: {}; give it another name (name = {})",
                            in_quotes(name), why, in_quotes(better(name.substr(0, 40)))));
  };
  if (name.empty()) throw Error("the name of an axis is empty");
  if (name.size() > kLongestName) {
    refuse(fmt::format("it has more than {} letters", kLongestName));
  }
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto good = [&](char c) { return letter(c) || (c >= '0' && c <= '9'); };
  if (!letter(name[0]) || !std::ranges::all_of(name, good)) {
    refuse("it becomes a dimension of the result, of letters, digits and _, a letter first");
  }
  if (std::ranges::count(names_in_result(measures), name) > 0) {
    refuse("what is measured has that name");
  }
  if (kTakenByXarray.find(" " + name + " ") != std::string_view::npos) {
    refuse(fmt::format("data.{} is something else in xarray", name));
  }
}

}  // namespace headflow

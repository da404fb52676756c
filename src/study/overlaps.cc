#include "study/overlaps.h"

#include <cmath>

#include "core/index.h"

namespace headflow {
namespace {

struct PartInfo {
  const char *name, *meaning, *brief;
  const char* second;  ///< dimension besides attention_head, or null
};

PartInfo info_of(Part part) {
  switch (part) {
    case Part::m:
      return {"m", "overlap of a head with a hidden direction, k_h . k*_f", "overlaps", "feature"};
    case Part::R:
      return {"R", "orthogonal parts of the heads in a fixed basis", "orthogonal parts",
              "other_head"};
    case Part::q:
      return {"q", "overlap of two heads, k_h . k_h' = m p^-1 m^T + R R^T", "overlaps of heads",
              "other_head"};
    case Part::r: return {"r", "symmetric square root of R R^T", "root of R R^T", "other_head"};
    case Part::R_norm:
      return {"R_norm", "norm of a head's part orthogonal to the hidden directions",
              "norms of the orthogonal parts", nullptr};
    case Part::blocks: break;
  }
  return {"", "", "", nullptr};
}

Matrix values_of(Part part, const Overlaps& place) {
  switch (part) {
    case Part::m: return place.m;
    case Part::R: return place.R;
    case Part::q: return place.q;
    case Part::r: return positive_square_root(place.R * place.R.transpose());
    case Part::R_norm: return place.R.rowwise().norm();
    case Part::blocks: break;
  }
  return {};
}

/// A quantity that is still without its values.
std::vector<Quantity> empty_quantities(const Problem& problem, const Dimensions& leading,
                                       const OverlapNames& names) {
  const std::size_t H = at(problem.H()), F = at(problem.F());
  std::vector<Quantity> out;
  const auto add = [&](const std::string& name, const std::string& meaning, Dimensions own) {
    own.insert(own.begin(), leading.begin(), leading.end());
    Quantity q{names.prefix + name + names.suffix, meaning + names.where, std::move(own), {}};
    q.values.reserve(q.size());
    out.push_back(std::move(q));
  };
  for (const Part part : names.parts) {
    if (part == Part::blocks) {
      for (const BlockLayout::Entry& e : problem.layout()->entries()) {
        Dimensions own;
        const std::vector<std::string> of_block = e.info.dimensions();
        for (std::size_t d = 0; d < of_block.size(); ++d) {
          own.push_back({of_block[d], at(e.shape[d])});
        }
        add(e.info.name, e.info.meaning, own);
        out.back().role = "parameter";
      }
      continue;
    }
    const PartInfo info = info_of(part);
    Dimensions own = {{"attention_head", H}};
    if (info.second) own.push_back({info.second, std::string(info.second) == "feature" ? F : H});
    add(info.name, names.where.empty() ? info.meaning : info.brief, own);
  }
  return out;
}

}  // namespace

Overlaps overlaps_of(const Problem& problem, const Point& in_frame) {
  Point user = problem.frame().leave(in_frame);
  return {std::move(user.m), std::move(user.R), in_frame.q(), std::move(user.blocks)};
}

Overlaps overlaps_of(const SgdState& state) {
  return {state.m(), state.Lambda, state.q(), state.blocks};
}

std::vector<double> flattened(const Matrix& matrix) {
  return {matrix.data(), matrix.data() + matrix.size()};
}

void add_overlaps(Dataset& out, const Problem& problem, const Dimensions& leading,
                  const OverlapNames& names,
                  const std::function<std::optional<Overlaps>(std::size_t)>& at) {
  std::vector<Quantity> made = empty_quantities(problem, leading, names);
  const std::size_t entries = size_of(leading);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::optional<Overlaps> one = at(i);
    std::size_t next = 0;
    const auto append = [&](const double* values, Eigen::Index size) {
      std::vector<double>& all = made[next++].values;
      all.insert(all.end(), values, values + size);
    };
    if (!one) {
      for (Quantity& q : made) q.values.insert(q.values.end(), q.size() / entries, std::nan(""));
      continue;
    }
    for (const Part part : names.parts) {
      if (part == Part::blocks) {
        for (const BlockLayout::Entry& e : problem.layout()->entries()) {
          append(one->blocks.data() + e.offset, e.size);
        }
        continue;
      }
      const Matrix values = values_of(part, *one);
      append(values.data(), values.size());
    }
  }
  for (Quantity& q : made) out.quantities.push_back(std::move(q));
}

void add_time(Dataset& out, std::vector<double> times) {
  const std::size_t n = times.size();
  out.add("time", "training time tau = learning rate x number of steps", {{"time", n}},
          std::move(times))
      .units = "learning rate x steps";
}

void add_p(Dataset& out, const Matrix& p) {
  const std::size_t F = at(p.rows());
  out.add("p", "overlap of two hidden directions, k*_f . k*_f'", {{"feature", F}, {"feature2", F}},
          flattened(p));
}

void add_p(Dataset& out, const Dimension& along, const std::vector<Matrix>& p) {
  const std::size_t F = at(p.front().rows());
  std::vector<double> all;
  for (const Matrix& one : p) all.insert(all.end(), one.data(), one.data() + one.size());
  out.add("p", "overlap of two hidden directions, k*_f . k*_f'",
          {along, {"feature", F}, {"feature2", F}}, std::move(all));
}

void add_point(Dataset& out, const Problem& problem, const OverlapNames& names,
               const Point& point) {
  add_overlaps(out, problem, {}, names, [&](std::size_t) { return overlaps_of(problem, point); });
}

void add_points(Dataset& out, const Problem& problem, const Dimension& along,
                const OverlapNames& names, const std::vector<Point>& points) {
  add_overlaps(out, problem, {along}, names,
               [&](std::size_t i) { return overlaps_of(problem, points[i]); });
}

}  // namespace headflow

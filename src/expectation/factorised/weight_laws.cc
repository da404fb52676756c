#include "expectation/factorised/weight_laws.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/index.h"
#include "expectation/factorised/kernels.h"

namespace headflow::factorised {
namespace {

constexpr int kStride = 3;                         // cells between two points in u
constexpr std::int64_t kLeft = -336, kRight = 56;  // of the tables: y = e^-42 and e^7
constexpr double kReach = 32;                      // below -t the integrand falls as e^u

/// Splines that meet y^k e^(-y), y = e^t, on the lattice; to the left of them they are 1, 0, 0.
struct Tables {
  // [k][n - kLeft], and the same by n modulo kStride: [k][phase][..]
  std::vector<double> all[3], phase[3][kStride];

  Tables() {
    for (int k = 0; k < 3; ++k) {
      std::vector<double>& c = all[k];
      for (std::int64_t n = kLeft; n < kRight; ++n) {
        const double t = kCell * static_cast<double>(n), y = std::exp(t);
        c.push_back(std::exp(k * t - y));
      }
      // The inverse of the filter (1, 26, 66, 26, 1)/120, a pole at a time.
      for (const double sign : {1.0, -1.0}) {
        const double z =
            (std::sqrt(270 - sign * std::sqrt(70980.0)) + sign * std::sqrt(105.0) - 13) / 2;
        c[0] /= 1 - z;  // constant to the left
        for (std::size_t i = 1; i < c.size(); ++i) c[i] += z * c[i - 1];
        c.back() = 0;  // zero to the right
        for (std::size_t i = c.size() - 1; i-- > 0;) c[i] = z * (c[i + 1] - c[i]);
        const double gain = (1 - z) * (1 - 1 / z);
        for (double& x : c) x *= gain;
      }
      for (std::size_t i = 0; i < c.size(); ++i) phase[k][i % kStride].push_back(c[i]);
    }
  }
};

const Tables& tables() {
  static const Tables all;
  return all;
}

/// Points u = j kStride kCell, j = first, ..., and s_k there: [k][j].
struct Grid {
  std::int64_t first = 0, count = 0;
  std::int64_t cell(std::int64_t j) const { return (first + j) * kStride; }
};

/// to[i] += the sum of steps[i + 1], steps[i + 2], ...
void add_steps(const std::vector<double>& steps, double* to) {
  double sum = 0;
  for (std::size_t i = steps.size() - 1; i-- > 0;) to[i] += sum += steps[i + 1];
}

void moments(const Grid& grid, const Histogram& law, std::vector<double>& s) {
  const auto n = static_cast<std::size_t>(grid.count);
  s.assign(3 * n, 0.0);
  std::vector<double> ones(n + 1, 0.0);
  const Tables& table = tables();
  const auto size = static_cast<std::int64_t>(table.all[0].size());
  for (std::size_t i = 0; i < law.mass.size(); ++i) {
    const double mass = law.mass[i];
    if (mass == 0) continue;
    // Points j from `low` on are in the tables; before, s_0 is 1.
    const std::int64_t g = law.first + static_cast<std::int64_t>(i);
    const std::int64_t from = kLeft - g - grid.cell(0);
    const std::int64_t low =
        std::clamp<std::int64_t>((from + kStride - 1) / kStride, 0, grid.count);
    ones[at(low)] += mass;
    const std::int64_t at_low = grid.cell(low) + g - kLeft;
    if (low == grid.count || at_low >= size) continue;
    const std::int64_t many = std::min(grid.count - low, (size - 1 - at_low) / kStride + 1);
    for (std::size_t k = 0; k < 3; ++k) {
      const double* from_table = table.phase[k][at_low % kStride].data() + at_low / kStride;
      double* to = s.data() + k * n + at(low);
      for (std::int64_t j = 0; j < many; ++j) to[j] += mass * from_table[j];
    }
  }
  add_steps(ones, s.data());
}

/// dE/dmass of every cell from dE/ds_k(u), then its slope as polynomials.
void pull_back(const Grid& grid, const std::vector<double>& bar, std::int64_t first,
               std::int64_t count, Slopes& out) {
  std::vector<double> D(at(count), 0.0), ones(at(count + 1), 0.0);
  const Tables& table = tables();
  const auto size = static_cast<std::int64_t>(table.all[0].size());
  const auto n = static_cast<std::size_t>(grid.count);
  for (std::int64_t j = 0; j < grid.count; ++j) {
    const std::int64_t offset = grid.cell(j) + first - kLeft;  // of the first cell in the tables
    const std::int64_t low = std::clamp<std::int64_t>(-offset, 0, count);
    const std::int64_t high = std::clamp<std::int64_t>(size - offset, 0, count);
    ones[at(low)] += bar[at(j)];
    for (std::size_t k = 0; k < 3; ++k) {
      const double weight = bar[k * n + at(j)];
      if (weight == 0 || low >= high) continue;
      const double* from = table.all[k].data() + (offset + low);
      double* to = D.data() + low;
      for (std::int64_t g = 0; g < high - low; ++g) to[g] += weight * from[g];
    }
  }
  add_steps(ones, D.data());
  const SplinePolynomials& spline = spline_polynomials();
  out.first = first + 2;
  out.cells = count - kTouched + 1;
  out.coefficient.assign(at(out.cells * 8), 0.0);
  for (std::int64_t q = 0; q < out.cells; ++q) {
    for (int d = 1; d < kTouched; ++d) {
      double sum = 0;
      for (int k = 0; k < kTouched; ++k) sum += spline[d][k] * D[at(q + k)];
      out.coefficient[at(q * 8 + d - 1)] = d * sum / kCell;
    }
  }
}

std::vector<Dual> with_tangent(const std::vector<double>& value,
                               const std::vector<double>& tangent) {
  std::vector<Dual> out(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    out[i] = Dual(value[i], tangent.empty() ? 0.0 : tangent[i]);
  }
  return out;
}

}  // namespace

const SplinePolynomials& spline_polynomials() {
  struct Made {
    SplinePolynomials c = {};
    Made() {
      // B(y) = sum_j (-1)^j (6 over j) (y + 3 - j)_+^5 / 120 at y = f + 2 - k.
      const double six[] = {1, 6, 15, 20, 15, 6, 1}, five[] = {1, 5, 10, 10, 5, 1};
      for (int k = 0; k < kTouched; ++k) {
        for (int j = 0; j <= 5 - k; ++j) {
          for (int d = 0; d < kTouched; ++d) {
            const double power = std::pow(5 - k - j, 5 - d);  // 0^0 = 1
            c[d][k] += (j % 2 ? -1 : 1) * six[j] * five[d] * power / 120;
          }
        }
      }
    }
  };
  static const Made made;
  return made.c;
}

void check_width(double cells) {
  if (cells <= kMostCells) return;
  throw Error(
      "the factorised engine has no histogram for weights of tokens that are so far apart (very "
      "large scores): use run.engine = \"qmc\" or \"mc\"");
}

void Histogram::add(const Histogram& other, double scale) {
  if (other.mass.empty()) return;
  if (mass.empty()) first = other.first;
  if (other.first < first) {
    mass.insert(mass.begin(), at(first - other.first), 0.0);
    first = other.first;
  }
  if (other.end() > end()) mass.resize(at(other.end() - first), 0.0);
  for (std::size_t i = 0; i < other.mass.size(); ++i) {
    mass[at(other.first - first) + i] += scale * other.mass[i];
  }
}

void WeightLoss::evaluate(const Histogram* law, const Histogram* tangent) {
  const double L = tokens_;
  const std::int64_t low = std::min(law[0].first, law[1].first),
                     high = std::max(law[0].end(), law[1].end());
  check_width(static_cast<double>(high - low));
  Grid grid;
  grid.first = -(high + static_cast<std::int64_t>(kReach / kCell)) / kStride - 1;
  grid.count = (-low + kRight) / kStride + 1 - grid.first;
  const auto n = static_cast<std::size_t>(grid.count);
  std::vector<double> s[2], ds[2];
  for (int token = 0; token < 2; ++token) {
    moments(grid, law[token], s[token]);
    if (tangent) moments(grid, tangent[token], ds[token]);
  }
  first_u_ = grid.first;
  count_u_ = grid.count;
  for (int token = 0; token < 2; ++token) {
    moments_[token] = s[token];
    first_cell_[token] = law[token].first;
  }
  const std::vector<Dual> ordinary = with_tangent(s[0], ds[0]),
                          relevant = with_tangent(s[1], ds[1]);
  const Dual *s0 = ordinary.data(), *s1 = s0 + n, *s2 = s1 + n;
  const Dual *r0 = relevant.data(), *r1 = r0 + n, *r2 = r1 + n;
  const auto wide = at(padded(static_cast<int>(n)));
  std::vector<Dual> p1(wide), p2(wide), p3(wide), base(wide, Dual(1.0));
  // A spline may be below zero by its error where the law has no mass.
  for (std::size_t u = 0; u < n; ++u) base[u] = s0[u].value > 0 ? s0[u] : Dual(0.0);
  token_powers(static_cast<int>(wide), L, base.data(), p1.data(), p2.data(), p3.data());
  const double W = kStride * kCell;
  Dual loss = 1.0;
  double total = 0;
  std::vector<double> bar[2] = {std::vector<double>(3 * n), std::vector<double>(3 * n)},
                      dbar[2] = {bar[0], bar[0]};
  const auto set = [&](int token, std::size_t k, std::size_t u, const Dual& x) {
    bar[token][k * n + u] = x.value;
    dbar[token][k * n + u] = x.tangent;
  };
  for (std::size_t u = 0; u < n; ++u) {
    const Dual own = r2[u] - 2.0 * r1[u], P2 = (L - 1) * W * p2[u];
    loss += W * own * p1[u] + P2 * s2[u] * r0[u];
    total += (W * r1[u] * p1[u] + P2 * s1[u] * r0[u]).value;
    set(0, 0, u, P2 * own + (L - 1) * (L - 2) * W * p3[u] * s2[u] * r0[u]);
    set(0, 2, u, P2 * r0[u]);
    set(1, 0, u, P2 * s2[u]);
    set(1, 1, u, -2.0 * W * p1[u]);
    set(1, 2, u, W * p1[u]);
  }
  loss_ = loss;
  defect_ = std::isfinite(total) ? 3 * std::abs(total - 1) : HUGE_VAL;
  for (int token = 0; token < 2; ++token) {
    const auto cells = static_cast<std::int64_t>(law[token].mass.size());
    pull_back(grid, bar[token], law[token].first, cells, slopes_[token]);
    if (tangent) pull_back(grid, dbar[token], law[token].first, cells, tangent_slopes_[token]);
  }
}

Matrix WeightLoss::curvature(const Matrix* mass_slopes) const {
  const double L = tokens_, W = kStride * kCell;
  const Grid grid{first_u_, count_u_};
  const auto n = static_cast<std::size_t>(grid.count);
  const Tables& table = tables();
  const auto size = static_cast<std::int64_t>(table.all[0].size());
  // d s_k(u), [u][number].
  Matrix slope[2][3];
  for (int token = 0; token < 2; ++token) {
    const Matrix& rows = mass_slopes[token];
    Matrix before(rows.rows() + 1, rows.cols());  // sums over the cells before
    before.row(0).setZero();
    for (Eigen::Index g = 0; g < rows.rows(); ++g) before.row(g + 1) = before.row(g) + rows.row(g);
    for (int k = 0; k < 3; ++k) slope[token][k] = Matrix::Zero(grid.count, rows.cols());
    for (std::int64_t j = 0; j < grid.count; ++j) {
      const std::int64_t offset = grid.cell(j) + first_cell_[token] - kLeft;
      const std::int64_t low = std::clamp<std::int64_t>(-offset, 0, rows.rows());
      const std::int64_t high = std::clamp<std::int64_t>(size - offset, 0, rows.rows());
      slope[token][0].row(j) = before.row(low);
      if (low >= high) continue;
      for (int k = 0; k < 3; ++k) {
        const Eigen::Map<const Eigen::RowVectorXd> from(table.all[k].data() + (offset + low),
                                                        high - low);
        slope[token][k].row(j).noalias() += from * rows.middleRows(low, high - low);
      }
    }
  }
  const double *s0 = moments_[0].data(), *s2 = s0 + 2 * n;
  const double *r0 = moments_[1].data(), *r1 = r0 + n, *r2 = r1 + n;
  // E'' is the sum over u of these, and their transposes.
  Vector ss(grid.count), s_s2(grid.count), s_r0(grid.count), s_r1(grid.count), s2_r0(grid.count);
  const auto power = [](double x, double n_th) { return n_th < 0 ? 0.0 : std::pow(x, n_th); };
  for (std::int64_t j = 0; j < grid.count; ++j) {
    const std::size_t u = at(j);
    const double x = std::max(s0[u], 0.0), own = r2[u] - 2 * r1[u];
    const double x2 = (L - 1) * W * power(x, L - 2), x3 = (L - 1) * (L - 2) * W * power(x, L - 3),
                 x4 = (L - 1) * (L - 2) * (L - 3) * W * power(x, L - 4);
    ss[j] = 0.5 * (x3 * own + x4 * s2[u] * r0[u]);
    s_s2[j] = x3 * r0[u];
    s_r0[j] = x3 * s2[u];
    s_r1[j] = -2 * x2;
    s2_r0[j] = x2;
  }
  const Matrix& S0 = slope[0][0];
  Matrix with = ss.asDiagonal() * S0;
  with += s_s2.asDiagonal() * slope[0][2];
  with += s_r0.asDiagonal() * slope[1][0];
  with += s_r1.asDiagonal() * (slope[1][1] - 0.5 * slope[1][2]);
  Matrix out = S0.transpose() * with;
  out += slope[0][2].transpose() * (s2_r0.asDiagonal() * slope[1][0]);
  return out + out.transpose().eval();
}

}  // namespace headflow::factorised

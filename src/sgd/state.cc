#include "sgd/state.h"

#include <Eigen/Cholesky>
#include <Eigen/QR>
#include <cmath>
#include <utility>

#include "core/error.h"

namespace headflow {

double random_chi(RandomStream& stream, double dof) {
  if (dof < 1) return 0.0;
  if (dof == 1) return std::abs(stream.normal());
  // Marsaglia and Tsang's method for gamma numbers of shape dof / 2 >= 1.
  const double d = dof / 2 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = stream.normal(), u = stream.uniform();
    const double t = 1 + c * x, v = t * t * t;
    if (v > 0 && std::log(u) < 0.5 * x * x + d * (1 - v + std::log(v))) return std::sqrt(2 * d * v);
  }
}

SgdState initial_state(const Problem& problem, std::int64_t dimension, std::uint64_t seed,
                       std::uint32_t run) {
  const int H = problem.H(), F = problem.F();
  RandomStream stream({seed, Purpose::sgd_initial, run}, 0);
  Matrix T = Matrix::Zero(F + H, F + H);
  for (int i = 0; i < F + H; ++i) {
    for (int j = 0; j < i; ++j) T(i, j) = stream.normal();
    T(i, i) = random_chi(stream, static_cast<double>(dimension - i));
  }
  T /= std::sqrt(static_cast<double>(dimension));
  SgdState state;
  state.C = T.topLeftCorner(F, F);
  state.U = problem.eta() * T.bottomLeftCorner(H, F);
  state.Lambda = problem.eta() * T.bottomRightCorner(H, H);
  state.blocks = problem.start_point().blocks;
  return state;
}

std::vector<double> packed(const SgdState& state) {
  std::vector<double> out;
  for (const Matrix* part : {&state.C, &state.U, &state.Lambda}) {
    out.insert(out.end(), part->data(), part->data() + part->size());
  }
  out.insert(out.end(), state.blocks.data(), state.blocks.data() + state.blocks.size());
  return out;
}

SgdState unpacked(const std::vector<double>& numbers, int heads, int features) {
  const Eigen::Index H = heads, F = features, size = F * F + H * F + H * H,
                     blocks = static_cast<Eigen::Index>(numbers.size()) - size;
  if (blocks < 0) {
    throw Error(fmt::format("a state of {} heads has at least {} numbers, not {}", heads, size,
                            numbers.size()));
  }
  const double* from = numbers.data();
  const auto matrix = [&](Eigen::Index rows, Eigen::Index columns) -> Matrix {
    const double* here = std::exchange(from, from + rows * columns);
    return Eigen::Map<const Matrix>(here, rows, columns);
  };
  SgdState out{matrix(F, F), matrix(H, F), matrix(H, H), {}};
  out.blocks = Blocks(Vector(Eigen::Map<const Vector>(from, blocks)));
  return out;
}

SgdState state_with(const Matrix& p, const Point& user) {
  SgdState state;
  state.C = Eigen::LLT<Matrix>(p).matrixL();
  state.U = state.C.triangularView<Eigen::Lower>().solve(user.m.transpose()).transpose();
  state.Lambda = triangular_root(user.R);
  state.blocks = user.blocks;
  return state;
}

Point point_of(const SgdState& state) { return {state.m(), state.Lambda, state.blocks}; }

Matrix triangular_root(const Matrix& M) {
  const Eigen::Index n = M.rows();
  const Eigen::HouseholderQR<Matrix> qr(M.transpose());
  return Matrix(qr.matrixQR().topRows(n).triangularView<Eigen::Upper>()).transpose();
}

}  // namespace headflow

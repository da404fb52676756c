// Which components of a mixture go together: those whose spans are not orthogonal.

#include <Eigen/Dense>
#include <algorithm>
#include <numeric>

#include "theory/evidence.h"

namespace headflow {
namespace {

constexpr double kOrthogonal = 1e-13;  // cosine that counts as zero

/// Mean and factor as columns, those of length zero left out.
Matrix directions(const MixtureComponent& component) {
  Matrix all(component.mean.size(), component.factor.cols() + 1);
  all << component.mean, component.factor;
  Eigen::Index kept = 0;
  for (Eigen::Index j = 0; j < all.cols(); ++j) {
    const double length = all.col(j).norm();
    if (length > 0.0) all.col(kept++) = all.col(j) / length;
  }
  return all.leftCols(kept);
}

/// The component in coordinates of an orthonormal basis (columns).
MixtureComponent in_basis(const MixtureComponent& component, const Matrix& basis) {
  return {component.weight, basis.transpose() * component.mean,
          basis.transpose() * component.factor};
}

/// An orthonormal basis of the span of all columns, strongest direction first.
Matrix basis_of(const std::vector<MixtureComponent>& components) {
  if (components.size() == 1 && components[0].factor.cols() == 0) return directions(components[0]);
  const Eigen::Index F = components.front().mean.size();
  Matrix second = Matrix::Zero(F, F);
  for (const MixtureComponent& component : components) {
    const Matrix unit = directions(component);
    second += unit * unit.transpose();
  }
  const SymmetricEigen eigen(second);
  const double least = 1e-12 * std::max(1.0, eigen.eigenvalues()[F - 1]);
  Eigen::Index rank = 0;
  while (rank < F && eigen.eigenvalues()[F - 1 - rank] > least) ++rank;
  return eigen.eigenvectors().rightCols(rank).rowwise().reverse();
}

/// True if a lone component has the same weight, variances and |means| as another.
bool same(const EvidenceBlock& a, const EvidenceBlock& b) {
  if (a.components.size() != 1 || b.components.size() != 1) return false;
  const MixtureComponent &x = a.components[0], &y = b.components[0];
  const auto atom = [](const MixtureComponent& c) { return c.factor.cols() == 0; };
  return atom(x) && atom(y) && x.weight == y.weight && x.mean.norm() == y.mean.norm();
}

}  // namespace

std::vector<EvidenceBlock> evidence_blocks(const GaussianMixture& prior, bool whole) {
  const std::vector<MixtureComponent>& all = prior.components();
  std::vector<Matrix> unit;
  unit.reserve(all.size());
  for (const MixtureComponent& component : all) unit.push_back(directions(component));

  std::vector<std::size_t> group(all.size());
  std::iota(group.begin(), group.end(), std::size_t{0});
  for (std::size_t j = 0; j < all.size(); ++j) {
    for (std::size_t k = 0; k < j; ++k) {
      if (group[j] == group[k]) continue;
      const Matrix cosines = unit[j].transpose() * unit[k];
      if (!whole && (cosines.size() == 0 || cosines.cwiseAbs().maxCoeff() <= kOrthogonal)) continue;
      const std::size_t from = group[j], to = group[k];
      std::replace(group.begin(), group.end(), from, to);
    }
  }

  std::vector<EvidenceBlock> blocks;
  for (std::size_t g = 0; g < all.size(); ++g) {
    EvidenceBlock block;
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (group[k] == g) block.components.push_back(all[k]);
    }
    if (block.components.empty()) continue;
    const Matrix basis = basis_of(block.components);
    for (MixtureComponent& component : block.components) component = in_basis(component, basis);
    const auto twin = std::find_if(blocks.begin(), blocks.end(),
                                   [&](const EvidenceBlock& other) { return same(block, other); });
    if (twin != blocks.end()) {
      ++twin->times;
    } else {
      blocks.push_back(std::move(block));
    }
  }
  return blocks;
}

}  // namespace headflow

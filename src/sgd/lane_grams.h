#pragma once

// Vectors of sample sums in the D' dimensions that no state vector reaches, known only by their
// Gram matrix: linear algebra and random rotations for 8 independent sums at once, one per
// vector lane. A triangle holds n (n + 1) / 2 groups of 8 numbers, rows first.

#include <cstddef>
#include <cstdint>

#include "core/index.h"
#include "core/random.h"

namespace headflow {

inline constexpr std::size_t triangle(int n) { return at(n) * at(n + 1) / 2; }

/// Which chi number of which group of 8 sums.
struct ChiNumber {
  std::uint64_t group = 0, number = 0;
};

/// Square roots of chi-square numbers, dof >= 2, one for each lane. Marsaglia and Tsang's method:
/// `normal` and `uniform` (8 numbers each) are the first proposal; the few lanes that reject it
/// take theirs from the stream `retry`, from a stretch that is theirs alone.
void lane_chi(const StreamKey& retry, const ChiNumber& which, double dof, const double* normal,
              const double* uniform, double* out);

/// The stretch of that stream: an item for each group, lane and number below 256; numbers beyond
/// share items, each 256 of them further on by 64 draws, where a retry takes three or six.
RandomStream chi_retries(const StreamKey& retry, const ChiNumber& which, int lane);

/// V lower triangular with V V^T = K; a pivot that vanishes gives a zero column.
void lane_cholesky(int n, const double* K, double* V);

/// K += A A^T for a lower triangle A, or for a matrix A with n rows [n][columns].
void lane_add_gram(int n, const double* A, double* K);
void lane_add_gram(int n, int columns, const double* A, double* K);

/// out = A B for lower triangles.
void lane_triangle_product(int n, const double* A, const double* B, double* out);

/// The Gram matrix of V1 Q1 + V2 Q2, Q1 and Q2 independent and each n orthonormal vectors of Haar's
/// law, from the Gram matrices K1 (replaced by the result) and K2. `normals` [n][n] and the
/// triangle `wishart` (the factor of a Wishart matrix with D' - n degrees of freedom) make such a
/// Q: N = [normals, wishart], Q = chol(N N^T)^-1 N. Only V1 Q_left V2^T is needed of it. scratch:
/// merge_scratch(n) groups.
void lane_merge(int n, const double* normals, const double* wishart, const double* K2, double* K1,
                double* scratch);

inline constexpr std::size_t merge_scratch(int n) { return 5 * triangle(n) + at(n) * at(n); }

/// The residual w = e_0 - mean of 8 samples and what SGD needs of it.
///   tokens, columns  x [tokens][columns]: coordinates of the tokens along the state's basis
///   axes             y [tokens][axes] in: normals; out: coordinates along the block's own axes.
///                    X_perp^T w = |w| u where u is `u` [axes]: y <- y + w^ (u - w^T y)
///   mean  [tokens]   in: attention; out: w / |w|
///   s     [tokens]   out: active (2 / D) G w, G the Gram matrix of the tokens
///   active           8 numbers, 1 for a sample that counts and else 0
///   loss             [2] added to: active w^T G w / D and its square
void lane_residual(int tokens, int columns, const double* x, int axes, const double* u, double* y,
                   double two_over_D, const double* active, double* mean, double* s, double* loss);

/// g [heads][tokens] <- g (1 - w^ w^^T).
void lane_project(int heads, int tokens, const double* w_hat, double* g);

}  // namespace headflow

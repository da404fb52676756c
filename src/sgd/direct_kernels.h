#pragma once

// Products with the tokens of one sample in D dimensions. Rows have `stride` numbers, a multiple
// of 8 and aligned to 64 bytes; those beyond D are zero. Sums over D are eight partial sums,
// ((0 + 1) + (2 + 3)) + ((4 + 5) + (6 + 7)) at the end, so that AVX2 and AVX-512 give the same
// bits.

#include <cstddef>

namespace headflow {

/// chi[h * chi_step + t * token_step] = k_h . x_t.
void direct_scores(int heads, int tokens, std::size_t stride, const double* k, const double* x,
                   std::size_t chi_step, std::size_t token_step, double* chi);

/// out_t = x_t . r with r = sum_t w_t x_t: the product of the Gram matrix of the tokens with w.
void direct_gram_product(int tokens, std::size_t stride, const double* x, const double* w,
                         double* out);

/// sum_h += sum_t g[h * g_step + t * token_step] x_t.
void direct_outer(int heads, int tokens, std::size_t stride, const double* g, std::size_t g_step,
                  std::size_t token_step, const double* x, double* sum);

/// y += sum_f weight_f x_f.
void direct_add(int rows, std::size_t stride, const double* weight, const double* x, double* y);

}  // namespace headflow

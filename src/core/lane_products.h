#pragma once

// The small matrix products of engines with samples and of SGD, on groups of 8 samples (one per
// vector lane). Arrays written [a][b] hold a*b groups of kLanes numbers. Samples may be
// stored as float or double; arithmetic and results are double.

#include <cstddef>

#include "core/lanes.h"

namespace headflow {

/// out[h][t] = sum_k W[h * stride + k] * x[t][k],  h < rows, t < tokens, k < columns.
/// Prefetches x + next alongside, spread over the arithmetic: a burst would stall.
/// Cost: rows * tokens * columns fused multiply-adds per lane.
void lane_scores(const double* W, int stride, int rows, int columns, const double* x, int tokens,
                 std::ptrdiff_t next, double* out);
void lane_scores(const double* W, int stride, int rows, int columns, const float* x, int tokens,
                 std::ptrdiff_t next, double* out);

/// sum[h * stride + k] += sum over groups n and tokens t of g_n[h][t] * x_n[t][k],
/// with g_n = g + n * g_step and x_n = x + n * x_step (steps in numbers).
void lane_outer(int rows, int columns, int stride, int tokens, int groups, const double* g,
                std::ptrdiff_t g_step, const double* x, std::ptrdiff_t x_step, double* sum);
void lane_outer(int rows, int columns, int stride, int tokens, int groups, const double* g,
                std::ptrdiff_t g_step, const float* x, std::ptrdiff_t x_step, double* sum);

/// Group h * row_step + p * step of out = table[h * kLanes + index[p]], lane by lane: a table of
/// 8 numbers a row. Prefetches index + next.
void lane_lookup(int rows, int placements, const double* table, const double* index,
                 std::ptrdiff_t next, int row_step, int step, double* out);
void lane_lookup(int rows, int placements, const double* table, const float* index,
                 std::ptrdiff_t next, int row_step, int step, double* out);

/// total[j] += batch[j], and for j < squared: squares[j] += batch[j]^2 * inverse_size.
/// Then batch = 0. inverse_size holds one number per lane.
void lane_close_batch(int count, int squared, const double* inverse_size, double* batch,
                      double* total, double* squares);

}  // namespace headflow

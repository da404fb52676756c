#pragma once

// LU factors of a dense matrix, with row pivots, in a loop that can be asked to stop: at thousands
// of unknowns a factorisation takes seconds.

#include <cstddef>
#include <vector>

#include "core/context.h"

namespace headflow {

enum class LuOutcome { done, singular, stopped };

/// In place, of n columns of n numbers; row k was exchanged with pivots[k]. The context is asked
/// once a column whether to stop now. Cost: 2/3 n^3 operations.
LuOutcome factorise(std::size_t n, double* const* columns, std::vector<std::size_t>& pivots,
                    const Context& context);

/// x becomes the solution for the right-hand side x.
void solve_factorised(std::size_t n, const double* const* columns,
                      const std::vector<std::size_t>& pivots, double* x);

}  // namespace headflow

#include "dynamics/stoppable_lu.h"

#include <cmath>
#include <utility>

namespace headflow {

LuOutcome factorise(std::size_t n, double* const* columns, std::vector<std::size_t>& pivots,
                    const Context& context) {
  pivots.resize(n);
  for (std::size_t j = 0; j < n; ++j) {
    if (context.observer && context.observer->wish() == Wish::stop_now) return LuOutcome::stopped;
    // What the columns to the left do to this one, then its own pivot.
    double* a = columns[j];
    for (std::size_t k = 0; k < j; ++k) std::swap(a[k], a[pivots[k]]);
    for (std::size_t k = 0; k < j; ++k) {
      const double x = a[k];
      if (x == 0.0) continue;
      const double* left = columns[k];
      for (std::size_t i = k + 1; i < n; ++i) a[i] -= x * left[i];
    }
    std::size_t largest = j;
    for (std::size_t i = j + 1; i < n; ++i) {
      if (std::abs(a[i]) > std::abs(a[largest])) largest = i;
    }
    pivots[j] = largest;
    if (!(std::abs(a[largest]) > 0.0)) return LuOutcome::singular;
    std::swap(a[j], a[largest]);
    for (std::size_t k = 0; k < j; ++k) std::swap(columns[k][j], columns[k][largest]);
    for (std::size_t i = j + 1; i < n; ++i) a[i] /= a[j];
  }
  return LuOutcome::done;
}

void solve_factorised(std::size_t n, const double* const* columns,
                      const std::vector<std::size_t>& pivots, double* x) {
  for (std::size_t k = 0; k < n; ++k) std::swap(x[k], x[pivots[k]]);
  for (std::size_t k = 0; k < n; ++k) {
    for (std::size_t i = k + 1; i < n; ++i) x[i] -= x[k] * columns[k][i];
  }
  for (std::size_t k = n; k-- > 0;) {
    x[k] /= columns[k][k];
    for (std::size_t i = 0; i < k; ++i) x[i] -= x[k] * columns[k][i];
  }
}

}  // namespace headflow

// The same law by both methods: every entry of m, q, b and v after several steps with a large
// learning rate, over thousands of replicas, and chains with a mistake that must be noticed.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sgd/method.h"
#include "support/effort.h"
#include "support/plain_reduced.h"
#include "support/problems.h"
#include "support/two_samples.h"

namespace headflow::law_test {
namespace {

int count_of_replicas() { return testing::by_effort(20, 1000, 4000); }
const Workers kOneThread;

struct Setting {
  const char *activation, *prior;
  int D, L, H, F, batch;
  double rate;
  int steps;
};

// From D = F + H, where nothing is beyond the basis, over the sizes where the coordinates beyond
// are drawn as they are (up to D = 9, 14 and 20 here) to the general case; batches of one chunk, of
// many, and of many blocks.
constexpr Setting kSettings[] = {{"softmax", "flipping", 30, 3, 2, 2, 5, 1.0, 20},
                                 {"softmax", "gaussian", 60, 4, 2, 2, 100, 2.0, 6},
                                 {"softmax", "flipping", 14, 3, 2, 2, 30, 3.0, 6},
                                 {"softmax", "gaussian", 14, 4, 2, 2, 600, 2.0, 3},
                                 {"softmax-1", "gaussian", 30, 4, 2, 2, 5, 1.0, 20},
                                 {"softmax-1", "flipping", 60, 4, 3, 2, 20, 1.5, 12},
                                 {"softmax-1", "flipping", 4, 4, 2, 2, 4, 1.0, 8},
                                 {"softmax-1", "flipping", 5, 4, 2, 2, 4, 1.0, 8},
                                 {"softmax-1", "gaussian", 9, 4, 2, 2, 4, 1.0, 8},
                                 {"softmax-1", "flipping", 10, 4, 2, 2, 30, 1.0, 8},
                                 {"b-softmax", "gaussian", 60, 3, 3, 2, 60, 1.0, 10},
                                 {"b-softmax", "flipping", 30, 4, 3, 2, 5, 1.0, 20},
                                 {"b-softmax", "gaussian", 20, 2, 4, 2, 40, 1.0, 8},
                                 {"b-softmax", "flipping", 6, 3, 3, 2, 7, 1.0, 8}};

Vector numbers(const SgdState& state) {
  const Matrix m = state.m(), q = state.q();
  std::vector<double> out(m.data(), m.data() + m.size());
  for (Eigen::Index i = 0; i < q.rows(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) out.push_back(q(i, j));
  }
  out.insert(out.end(), state.blocks.values().begin(), state.blocks.values().end());
  return Eigen::Map<const Vector>(out.data(), static_cast<Eigen::Index>(out.size()));
}

/// Rows: final states of independent runs.
template <class Run>
Matrix replicas(int count, const Run& run) {
  Matrix out;
  for (int r = 0; r < count; ++r) {
    const Vector row = numbers(run(r));
    if (r == 0) out.resize(count, row.size());
    out.row(r) = row;
  }
  return out;
}

template <class Make>
Matrix by_method(const Setting& s, const Problem& problem, const SgdState& start, const Make& make,
                 std::uint64_t seed, int count) {
  return replicas(count, [&](int r) {
    const SgdSetting setting{s.D, s.batch, s.rate, seed, static_cast<std::uint32_t>(r)};
    const auto sgd = make(problem, setting, start, kOneThread);
    for (int step = 0; step < s.steps; ++step) sgd->step(step);
    return sgd->state();
  });
}

Matrix by_plain(const Setting& s, const Problem& problem, const SgdState& start,
                testing::Fault fault, int count) {
  return replicas(count, [&](int r) {
    testing::PlainReduced sgd(problem, s.D, s.batch, s.rate, start,
                              static_cast<std::uint64_t>(r) + 1, fault);
    for (int step = 0; step < s.steps; ++step) sgd.step();
    return sgd.state();
  });
}

// False alarms: Bonferroni over all tests of a setting at 1e-4, 14 settings: 1.4e-3.
TEST(SgdLaw, ReducedIsDirect) {
  for (const Setting& s : kSettings) {
    SCOPED_TRACE(fmt::format("{} {} D {} L {} H {} batch {}", s.activation, s.prior, s.D, s.L, s.H,
                             s.batch));
    const Problem problem(testing::problem_options(s.activation, s.prior, s.L, s.H, s.F));
    const SgdState start = initial_state(problem, s.D, 3, 0);
    const Matrix direct = by_method(s, problem, start, make_direct, 11, count_of_replicas());
    const Matrix reduced = by_method(s, problem, start, make_reduced, 12, count_of_replicas());
    const testing::SameLaw same = testing::compare_laws(direct, reduced);
    EXPECT_GT(same.corrected_p(), 1e-4) << same.tests << " tests, smallest p " << same.smallest_p;
  }
}

// At D = 14 and one large step the parts beyond the basis matter: a chain with a mistake there is
// rejected, the same chain without it is not (false alarm 1e-4).
TEST(SgdLaw, MistakesAreNoticed) {
  const int count = 20000;
  const Setting s{"b-softmax", "gaussian", 14, 5, 3, 1, 6, 15.0, 1};
  const Problem problem(testing::problem_options(s.activation, s.prior, s.L, s.H, s.F));
  const SgdState start = initial_state(problem, s.D, 3, 0);
  const Matrix direct = by_method(s, problem, start, make_direct, 11, count);
  const auto corrected_p = [&](const Matrix& other) {
    return testing::compare_laws(direct, other).corrected_p();
  };
  using testing::Fault;
  EXPECT_GT(corrected_p(by_method(s, problem, start, make_reduced, 12, count)), 1e-4);
  const Fault faults[] = {Fault::none, Fault::frozen_norm, Fault::degrees_of_freedom,
                          Fault::orthogonal};
  for (int i = 0; i < 4; ++i) {
    if (testing::left_out(i, 4)) continue;  // the plain chain is slow with sanitizers
    const double p = corrected_p(by_plain(s, problem, start, faults[i], count));
    EXPECT_TRUE(faults[i] == Fault::none ? p > 1e-4 : p < 1e-6) << "p = " << p << " of " << i;
  }
}

}  // namespace
}  // namespace headflow::law_test

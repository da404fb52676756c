// What every activation says of itself must fit together: `attention` is the definition, forward
// and backward are held against it, and placements against those. Over the whole registry, and one
// that is given by its formula alone.

#include "model/activation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/aligned.h"
#include "model/formula_activation.h"
#include "support/differences.h"
#include "support/each_target.h"
#include "support/random_problems.h"

namespace headflow::activation_test {
namespace {

using testing::Draw;

/// Of no use but for its blocks of several kinds: heads and tokens that are not independent, and
/// nothing normalised.
struct MixedFormula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* parameters, S* sigma) const {
    using std::exp, std::tanh;
    const S *b = parameters, *t = b + n.H, &v = t[n.L];
    for (int h = 0; h < n.H; ++h) {
      for (int l = 0; l < n.L; ++l) {
        const S x = tanh(chi[h * n.L + l] - b[h]), next = chi[h * n.L + (l + 1) % n.L] + t[l];
        sigma[h * n.L + l] = v * x * x / (1.0 + tanh(0.5 * next) * tanh(0.25 * b[0])) + exp(-v * v);
      }
    }
  }
};

class Mixed final : public FormulaActivation<MixedFormula> {
 public:
  std::string_view name() const override { return "mixed"; }
  std::string_view formula() const override { return "none"; }
  std::vector<BlockInfo> blocks() const override {
    return {{"b", "bias of a head", {Axis::head}},
            {"t", "bias of a token", {Axis::token}},
            {"v", "scale", {}, [](const Sizes&) { return 1.0; }}};
  }
};

/// One with kinks: softpick without its small constant.
struct KinkedFormula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* /*parameters*/, S* sigma) const {
    using std::abs, std::expm1, std::exp, std::max;
    for (int h = 0; h < n.H; ++h, chi += n.L, sigma += n.L) {
      double top = 0;
      for (int l = 0; l < n.L; ++l) top = max(top, value_of(chi[l]));
      S sum = exp(-top);
      for (int l = 0; l < n.L; ++l) {
        sigma[l] = exp(chi[l] - top) - exp(-top);
        sum += abs(sigma[l]);
      }
      for (int l = 0; l < n.L; ++l) sigma[l] = max(sigma[l], 0.0) / sum;
    }
  }
};

class Kinked final : public FormulaActivation<KinkedFormula> {
 public:
  std::string_view name() const override { return "kinked"; }
  std::string_view formula() const override { return "none"; }
  bool smooth() const override { return false; }
};

/// Not even that: a block that has nothing to do with the sizes of the scores, before another one.
struct WeightedFormula {
  template <class S>
  void operator()(const Sizes& n, const S* chi, const S* parameters, S* sigma) const {
    using std::tanh;
    S sum = parameters[n.F];
    for (int f = 0; f < n.F; ++f) sum += (f + 1.0) * parameters[f];
    for (int i = 0; i < n.H * n.L; ++i) sigma[i] = sum * parameters[n.F] * tanh(chi[i]);
  }
};

class Weighted final : public FormulaActivation<WeightedFormula> {
 public:
  std::string_view name() const override { return "weighted"; }
  std::string_view formula() const override { return "none"; }
  std::vector<BlockInfo> blocks() const override {
    return {{"w", "weight of a feature", {Axis::feature}}, {"v", "scale", {}}};
  }
};

std::vector<std::shared_ptr<const Activation>> all() {
  auto out = activations();
  out.push_back(std::make_shared<const Mixed>());
  out.push_back(std::make_shared<const Kinked>());
  return out;
}

enum class Scores { moderate, large };

/// Eight samples, one a lane, and parameters around their initial values.
struct Case {
  Sizes n;
  Scores kind;
  std::string text;
  Blocks parameters;
  AlignedVector chi;  ///< [H][L]

  int scores() const { return n.H * n.L; }
  std::size_t groups(std::ptrdiff_t count) const {  // none is no array
    return static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, count)) * kLanes;
  }
  std::vector<double> lane(int i) const {
    std::vector<double> out;
    for (int j = 0; j < scores(); ++j) out.push_back(lanes(chi.data(), j)[i]);
    return out;
  }
};

/// Large scores are of size 300, but those of a head often differ by little, or all attention would
/// be 0 or 1.
Case random_case(const Activation& activation, const Sizes& n, Scores kind, Draw& draw) {
  Case out{n, kind,
           fmt::format("{} {} H {} L {}", activation.name(),
                       kind == Scores::large ? "large" : "moderate", n.H, n.L),
           Blocks(std::make_shared<const BlockLayout>(activation.blocks(), n)),
           AlignedVector(static_cast<std::size_t>(n.H * n.L) * kLanes)};
  set_initial(out.parameters);
  for (double& x : out.parameters.values()) x += 0.5 * draw.normal();
  for (int i = 0; i < kLanes; ++i) {
    for (int h = 0; h < n.H; ++h) {
      const double common = draw.integer(-1, 1) * 300.0;
      for (int l = 0; l < n.L; ++l) {
        double x = 2 * draw.normal();
        if (kind == Scores::large) x += i < 6 ? common : draw.uniform(-300, 300);
        lanes(out.chi.data(), h * n.L + l)[i] = x;
      }
    }
  }
  return out;
}

/// body(activation, case) for all of them; with every instruction set.
template <class Body>
void for_each_case(const Body& body) {
  testing::for_each_target([&](std::int64_t) {
    for (const auto& activation : all()) {
      Draw draw(11);
      for (const Scores kind : {Scores::moderate, Scores::large}) {
        for (int H = 1; H <= 4; ++H) {
          for (const int L : {1, 2, 3, 4, 5, 6, 9}) {  // 9: more than there are placements
            const Case c = random_case(*activation, {L, H, 2}, kind, draw);
            SCOPED_TRACE(c.text);
            body(*activation, c, draw);
          }
        }
      }
    }
  });
}

/// (1/H) sum_h sigma_hl by the definition, and the same of |sigma|.
struct Means {
  std::vector<double> mean, size;
};
Means means(const Activation& activation, const Case& c, const std::vector<double>& chi,
            const double* parameters) {
  std::vector<double> sigma(chi.size());
  activation.attention(c.n, chi.data(), parameters, sigma.data());
  Means out{std::vector<double>(static_cast<std::size_t>(c.n.L), 0.0), {}};
  out.size = out.mean;
  for (std::size_t j = 0; j < sigma.size(); ++j) {
    const std::size_t l = j % out.mean.size();
    out.mean[l] += sigma[j] / c.n.H;
    out.size[l] += std::abs(sigma[j]) / c.n.H;
  }
  return out;
}

/// What `forward` leaves behind.
struct Forward {
  AlignedVector u, state, mean;
};
Forward forward(const Activation& activation, const Case& c, const AlignedVector& chi) {
  Forward out{chi,
              AlignedVector(c.groups(static_cast<std::ptrdiff_t>(activation.state_groups(c.n)))),
              AlignedVector(c.groups(c.n.L))};
  activation.forward(c.n, c.parameters.data(), out.u.data(), out.state.data(), out.mean.data());
  return out;
}

TEST(Activation, ForwardGivesTheMeanOfAttention) {
  const auto close = [](double got, const Means& want, std::size_t l) {
    return std::abs(got - want.mean[l]) <= 1e-13 * want.size[l] + 1e-300;
  };
  for_each_case([&](const Activation& activation, const Case& c, Draw&) {
    const Forward got = forward(activation, c, c.chi);
    for (int i = 0; i < kLanes; ++i) {
      const Means want = means(activation, c, c.lane(i), c.parameters.data());
      for (int l = 0; l < c.n.L; ++l) {
        const double mean = lanes(got.mean.data(), l)[i];
        EXPECT_TRUE(close(mean, want, static_cast<std::size_t>(l)))
            << mean << " " << want.mean[static_cast<std::size_t>(l)];
        EXPECT_TRUE(std::isfinite(mean));
        if (std::abs(mean) > 1e-200) {
          EXPECT_FALSE(close((1 + 1e-12) * mean, want, static_cast<std::size_t>(l))) << "control";
        }
      }
    }
  });
}

// Differences are good to 1e-13 or so (softmax; 1e-12 at most). The loss is linear in s: any s
// does.
TEST(Activation, BackwardGivesTheDerivatives) {
  constexpr double kClose = 5e-12;
  double control_g = HUGE_VAL, control_parameters = HUGE_VAL;
  int compared = 0, skipped = 0;
  for_each_case([&](const Activation& activation, const Case& c, Draw& draw) {
    AlignedVector s(c.groups(c.n.L));
    for (double& x : s) x = draw.normal();
    Forward at = forward(activation, c, c.chi);
    constexpr double kBefore = 0.5;  // what is there is added to
    AlignedVector grad(c.groups(c.parameters.size()), kBefore);
    activation.backward(c.n, c.parameters.data(), s.data(), at.u.data(), at.state.data(),
                        grad.data());
    double most_g = 0, most_parameters = 0;  // of the differences to derivatives of the wrong sign
    for (int i = 0; i < kLanes; ++i) {
      std::vector<double> chi = c.lane(i);
      Vector parameters = c.parameters.values();
      const auto by_differences = [&](double& x) {
        const double here = x;
        const auto loss = [&](double there) {
          x = there;
          const Means m = means(activation, c, chi, parameters.data());
          double sum = 0;
          for (int l = 0; l < c.n.L; ++l) {
            sum -= lanes(s.data(), l)[i] * m.mean[static_cast<std::size_t>(l)];
          }
          return sum;
        };
        const double out = testing::slope(loss, here);
        // A kink within the reach of the differences: half the reach gives another number.
        const bool across =
            !activation.smooth() && std::abs(testing::slope(loss, here, 1.0 / 128) - out) > 1e-9;
        x = here;
        return across ? std::nan("") : out;
      };
      for (int j = 0; j < c.scores(); ++j) {
        const double got = lanes(at.u.data(), j)[i],
                     want = by_differences(chi[static_cast<std::size_t>(j)]);
        ++compared;
        if (std::isnan(want)) {
          ++skipped;
          continue;
        }
        EXPECT_NEAR(got, want, kClose) << "score " << j;
        most_g = std::max(most_g, std::abs(-got - want));
      }
      for (Eigen::Index j = 0; j < parameters.size(); ++j) {
        const double got = lanes(grad.data(), j)[i] - kBefore, want = by_differences(parameters[j]);
        if (std::isnan(want)) continue;
        EXPECT_NEAR(got, want, kClose) << "parameter " << j;
        most_parameters = std::max(most_parameters, std::abs(-got - want));
      }
    }
    if (c.n.L == 1 || c.n.H == 1 || c.kind == Scores::large) return;  // it may be constant there
    control_g = std::min(control_g, most_g);
    if (c.parameters.size() > 0) control_parameters = std::min(control_parameters, most_parameters);
  });
  EXPECT_LT(skipped, 0.1 * compared);
  EXPECT_GT(skipped, 0) << "one of the activations has kinks";
  EXPECT_GT(control_g, 1e6 * kClose) << "negative control: wrong sign of the scores' derivatives";
  EXPECT_GT(control_parameters, 1e6 * kClose) << "negative control: and of the parameters'";
}

// Where there is a formula, its tangents need no differences.
TEST(Activation, BackwardGivesTheTangentsOfAFormula) {
  const Mixed activation;
  Draw draw(12);
  for (const Scores kind : {Scores::moderate, Scores::large}) {
    const Case c = random_case(activation, {4, 3, 2}, kind, draw);
    AlignedVector s(c.groups(c.n.L)), grad(c.groups(c.parameters.size()), 0.0);
    for (double& x : s) x = draw.normal();
    Forward at = forward(activation, c, c.chi);
    activation.backward(c.n, c.parameters.data(), s.data(), at.u.data(), at.state.data(),
                        grad.data());
    for (int i = 0; i < kLanes; ++i) {
      // A random direction of everything: the slope along it, and the gradient times it.
      std::vector<Dual> chi, parameters, sigma(static_cast<std::size_t>(c.scores()));
      double got = 0, wrong = 0, want = 0;
      for (int j = 0; j < c.scores(); ++j) {
        chi.emplace_back(lanes(c.chi.data(), j)[i], draw.normal());
        got += lanes(at.u.data(), j)[i] * chi.back().tangent;
      }
      wrong = got;
      for (Eigen::Index j = 0; j < c.parameters.size(); ++j) {
        parameters.emplace_back(c.parameters.values()[j], draw.normal());
        got += lanes(grad.data(), j)[i] * parameters.back().tangent;
        wrong -= lanes(grad.data(), j)[i] * parameters.back().tangent;
      }
      activation.attention(c.n, chi.data(), parameters.data(), sigma.data());
      for (int j = 0; j < c.scores(); ++j) {
        want -= lanes(s.data(), j % c.n.L)[i] * sigma[static_cast<std::size_t>(j)].tangent / c.n.H;
      }
      EXPECT_NEAR(got, want, 1e-13);
      EXPECT_GT(std::abs(wrong - want), 1e-3) << "negative control: wrong sign of the parameters'";
    }
  }
}

/// What `placements` gives, for a number of them.
struct Placed {
  AlignedVector chi, g_relevant, loss, grad, second_moment;
};

struct Placements {
  int count;
  bool moderate, with_factor, with_weight, with_second_moment;
  AlignedVector chi, mu, factor, weight;  ///< scores in bits

  std::string text() const {
    return fmt::format("P {}{}{}{}{}", count, moderate ? " moderate" : "",
                       with_factor ? " factor" : "", with_weight ? " weight" : "",
                       with_second_moment ? " second moment" : "");
  }
};

/// What is there before, where it is added to.
Placed before(const Case& c, int count) {
  return {{},
          AlignedVector(c.groups(c.n.H * count)),
          AlignedVector(c.groups(1), 0.5),
          AlignedVector(c.groups(c.parameters.size()), 0.5),
          AlignedVector(c.groups(c.n.H * c.n.H), 0.5)};
}

Placed by_placements(const Activation& activation, const Case& c, const Placements& in) {
  Placed out = before(c, in.count);
  out.chi = in.chi;
  AlignedVector scratch(activation.scratch_groups(c.n) * kLanes, NAN);
  PlacementBatch batch;
  batch.sizes = c.n;
  batch.placements = in.count;
  batch.parameters = c.parameters.data();
  batch.moderate = in.moderate;
  batch.mu = in.mu.data();
  batch.factor = in.with_factor ? in.factor.data() : nullptr;
  batch.weight = in.with_weight ? in.weight.data() : nullptr;
  batch.chi = out.chi.data();
  batch.g_relevant = out.g_relevant.data();
  batch.loss = out.loss.data();
  batch.grad = out.grad.data();
  batch.second_moment = in.with_second_moment ? out.second_moment.data() : nullptr;
  batch.scratch = scratch.data();
  activation.placements(batch);
  return out;
}

/// The plain loop: one placement after the other, by forward and backward.
Placed by_samples(const Activation& activation, const Case& c, const Placements& in) {
  const int H = c.n.H, L = c.n.L, P = in.count;
  Placed out = before(c, P);
  out.chi.assign(in.chi.size(), 0.0);
  for (int p = 0; p < P; ++p) {
    AlignedVector chi = in.chi, s(c.groups(L)), grad(c.groups(c.parameters.size()), 0.0);
    for (int h = 0; h < H; ++h) {
      for (int i = 0; i < kLanes; ++i) {
        lanes(chi.data(), h * L + p)[i] += lanes(in.mu.data(), h * P + p)[i];
      }
    }
    for (double& x : chi) x *= std::numbers::ln2;
    Forward at = forward(activation, c, chi);
    for (int i = 0; i < kLanes; ++i) {
      const double weight = in.with_weight ? lanes(in.weight.data(), p)[i] : 1.0;
      for (int l = 0; l < L; ++l) {
        const double w = (l == p ? 1.0 : 0.0) - lanes(at.mean.data(), l)[i];
        out.loss[static_cast<std::size_t>(i)] += weight * w * w;
        lanes(s.data(), l)[i] = 2 * w;
      }
    }
    activation.backward(c.n, c.parameters.data(), s.data(), at.u.data(), at.state.data(),
                        grad.data());
    for (int i = 0; i < kLanes; ++i) {  // the weight after all, as a sum over samples has it
      const double weight = in.with_weight ? lanes(in.weight.data(), p)[i] : 1.0;
      const auto g = [&](int h, int l) { return lanes(at.u.data(), h * L + l)[i]; };
      for (int h = 0; h < H; ++h) {
        for (int l = 0; l < L; ++l) lanes(out.chi.data(), h * L + l)[i] += weight * g(h, l);
        lanes(out.g_relevant.data(), h * P + p)[i] = weight * g(h, p);
        for (int k = 0; in.with_second_moment && k < H; ++k) {
          double& sum = lanes(out.second_moment.data(), h * H + k)[i];
          for (int l = 0; l < L; ++l) sum += weight * g(h, l) * g(k, l);
        }
      }
      for (Eigen::Index j = 0; j < c.parameters.size(); ++j) {
        lanes(out.grad.data(), j)[i] += weight * lanes(grad.data(), j)[i];
      }
    }
  }
  return out;
}

/// Scores in bits within what `moderate` allows, if it is to be true.
Placements random_placements(const Case& c, int count, bool moderate, Draw& draw) {
  Placements out{count,
                 moderate,
                 draw.integer(0, 1) == 1,
                 draw.integer(0, 1) == 1,
                 draw.integer(0, 2) == 0,
                 c.chi,
                 AlignedVector(c.groups(c.n.H * count)),
                 {},
                 AlignedVector(c.groups(count))};
  for (double& x : out.mu) x = 3 * draw.normal();
  for (double& x : out.weight) x = draw.uniform(0, 1) < 0.2 ? 0.0 : draw.uniform(0.1, 2.0);
  for (const double x : out.mu) out.factor.push_back(std::exp2(x));
  return out;
}

double largest_difference(const AlignedVector& a, const AlignedVector& b) {
  double out = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_TRUE(std::isfinite(a[i]));
    out = std::max(out, std::abs(a[i] - b[i]));
  }
  return out;
}

double largest_difference(const Placed& a, const Placed& b) {
  return std::max({largest_difference(a.chi, b.chi), largest_difference(a.g_relevant, b.g_relevant),
                   largest_difference(a.loss, b.loss), largest_difference(a.grad, b.grad),
                   largest_difference(a.second_moment, b.second_moment)});
}

TEST(Activation, PlacementsAreSamplesOneByOne) {
  constexpr double kClose = 1e-12;  // losses and derivatives are of order 1
  int cases = 0, noticed = 0;       // where an activation is saturated, its derivative has no sign
  for_each_case([&](const Activation& activation, const Case& c, Draw& draw) {
    for (int count = 1; count <= std::min(c.n.L, kMaxPlacements); ++count) {
      for (const bool moderate : {true, false}) {
        const Placements in = random_placements(c, count, moderate, draw);
        SCOPED_TRACE(in.text());
        const auto largest = [](const AlignedVector& x) {
          return std::abs(*std::ranges::max_element(x, {}, [](double y) { return std::abs(y); }));
        };
        ASSERT_LE(largest(in.chi) + largest(in.mu) +
                      activation.largest_shift(c.parameters) * std::numbers::log2e,
                  kModerateScore);
        const Placed got = by_placements(activation, c, in);
        const Placed want = by_samples(activation, c, in);
        EXPECT_LE(largest_difference(got, want), kClose);
        Placed wrong = got;
        for (double& x : wrong.g_relevant) x = -x;
        if (c.n.L == 1) continue;
        ++cases;
        noticed += largest_difference(wrong, want) > 1e6 * kClose;
      }
    }
  });
  EXPECT_GT(noticed, 0.9 * cases) << "negative control: wrong sign of the relevant token's";
}

// Sizes that the scores do not show are known to the formula, too.
TEST(Activation, PlacementsKnowTheNumberOfFeatures) {
  const Weighted activation;
  Draw draw(13);
  const Case c = random_case(activation, {3, 2, 4}, Scores::moderate, draw);
  for (const bool moderate : {true, false}) {
    const Placements in = random_placements(c, 2, moderate, draw);
    EXPECT_LE(largest_difference(by_placements(activation, c, in), by_samples(activation, c, in)),
              1e-12);
  }
}

}  // namespace
}  // namespace headflow::activation_test

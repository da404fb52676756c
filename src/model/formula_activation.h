#pragma once

// An activation that is given by its formula, once, for any scalar type: values, derivatives (by
// reverse automatic differentiation) and the reference of the tests come from it.
//
//   struct MyFormula {
//     template <class S>  // double, Dual, Reverse
//     void operator()(const Sizes& n, const S* chi, const S* parameters, S* sigma) const {
//       ...               // sigma[h * n.L + l] from chi[h * n.L + l]
//     }
//   };
//   class Mine : public FormulaActivation<MyFormula> { ... name, formula, blocks ... };
// or, where that is all there is to say of it,
//   formula_activation("mine", "in help", MyFormula{}, {{"b", "bias of a head", {Axis::head}}})
//
// Cost: about ten times that of the formula for a gradient, and a hundred times that of vectorised
// functions. Vectorised functions may override
// forward and backward; a test over the registry holds them against the formula.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/dual.h"
#include "core/index.h"
#include "core/reverse.h"
#include "model/activation.h"

namespace headflow {

template <class Formula>
class FormulaActivation : public Activation {
 public:
  explicit FormulaActivation(Formula evaluate = {}) : evaluate_(std::move(evaluate)) {}

  void attention(const Sizes& sizes, const double* chi, const double* parameters,
                 double* sigma) const override {
    evaluate_(sizes, chi, parameters, sigma);
  }
  /// The same with one tangent.
  void attention(const Sizes& sizes, const Dual* chi, const Dual* parameters, Dual* sigma) const {
    evaluate_(sizes, chi, parameters, sigma);
  }

  // The scores are kept: `backward` evaluates the formula once more, on a tape.
  std::size_t state_groups(const Sizes& sizes) const override {
    return static_cast<std::size_t>(sizes.H) * static_cast<std::size_t>(sizes.L);
  }

  void forward(const Sizes& sizes, const double* parameters, double* u, double* state,
               double* mean) const override {
    const int n = sizes.H * sizes.L;
    std::vector<double> chi(static_cast<std::size_t>(n)), sigma(chi.size());
    for (int i = 0; i < kLanes; ++i) {
      for (int j = 0; j < n; ++j) chi[static_cast<std::size_t>(j)] = lanes(u, j)[i];
      evaluate_(sizes, chi.data(), parameters, sigma.data());
      for (int j = 0; j < n; ++j) lanes(state, j)[i] = chi[static_cast<std::size_t>(j)];
      for (int l = 0; l < sizes.L; ++l) {
        double sum = 0;
        for (int h = 0; h < sizes.H; ++h) sum += sigma[at(h * sizes.L + l)];
        lanes(mean, l)[i] = sum / sizes.H;
      }
    }
  }

  void backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                const double* state, double* grad) const override {
    const int n = sizes.H * sizes.L;
    const auto count = static_cast<std::size_t>(BlockLayout(blocks(), sizes).size());
    thread_local Tape tape;  // its memory is kept from one call to the next
    std::vector<Reverse> chi(static_cast<std::size_t>(n)), sigma(chi.size()), p(count);
    for (int i = 0; i < kLanes; ++i) {
      tape.clear();
      for (int j = 0; j < n; ++j) chi[static_cast<std::size_t>(j)] = tape.input(lanes(state, j)[i]);
      for (std::size_t j = 0; j < count; ++j) p[j] = tape.input(parameters[j]);
      evaluate_(sizes, chi.data(), p.data(), sigma.data());
      tape.clear_adjoints();
      for (int j = 0; j < n; ++j) {
        tape.add_adjoint(sigma[static_cast<std::size_t>(j)], -lanes(s, j % sizes.L)[i] / sizes.H);
      }
      tape.go_back();
      for (int j = 0; j < n; ++j) {
        lanes(u, j)[i] = tape.adjoint(chi[static_cast<std::size_t>(j)]);
      }
      for (std::size_t j = 0; j < count; ++j) {
        lanes(grad, static_cast<std::ptrdiff_t>(j))[i] += tape.adjoint(p[j]);
      }
    }
  }

 protected:
  /// c1 and c2 of OriginConstants, where d sigma_l / d chi_l' = a (delta_ll' - s) at chi = 0.
  static std::pair<double, double> origin_squares(const Sizes& sizes, double a, double s) {
    const double L = sizes.L, H = sizes.H;
    const double column = a * a * ((1 - s) * (1 - s) + (L - 1) * s * s);
    return {L * column / (H * H), column / (H * H)};
  }

 private:
  Formula evaluate_;
};

/// An activation of which nothing is known but its formula and its blocks.
template <class Formula>
std::shared_ptr<const Activation> formula_activation(std::string name, std::string text,
                                                     Formula formula,
                                                     std::vector<BlockInfo> blocks = {}) {
  class Plain final : public FormulaActivation<Formula> {
   public:
    Plain(std::string name, std::string text, Formula formula, std::vector<BlockInfo> blocks)
        : FormulaActivation<Formula>(std::move(formula)),
          name_(std::move(name)),
          text_(std::move(text)),
          blocks_(std::move(blocks)) {}
    std::string_view name() const override { return name_; }
    std::string_view formula() const override { return text_; }
    std::vector<BlockInfo> blocks() const override { return blocks_; }

   private:
    std::string name_, text_;
    std::vector<BlockInfo> blocks_;
  };
  return std::make_shared<Plain>(std::move(name), std::move(text), std::move(formula),
                                 std::move(blocks));
}

}  // namespace headflow

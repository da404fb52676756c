#pragma once

// An activation that looks at one score at a time, sigma_hl = a(chi_hl; parameters of head h),
// given by its formula, once, for any scalar type:
//
//   struct MyElement {
//     template <class S>
//     S operator()(const S& chi, const S* p) const { ... }   // p: the head's number of each block
//   };
//   class Mine : public ElementwiseActivation<MyElement> { ... name, formula, blocks ... };
//
// Blocks are one number a head or one for all. Everything else follows: values, derivatives, and
// expectations without samples, which need integrals over one and two Gaussian scores only.

#include <algorithm>
#include <utility>
#include <vector>

#include "core/dual.h"
#include "core/error.h"
#include "core/taylor.h"
#include "model/activation.h"

namespace headflow {

template <class Element>
class ElementwiseActivation : public Activation {
 public:
  explicit ElementwiseActivation(Element element = {}) : element_(std::move(element)) {}

  void attention(const Sizes& sizes, const double* chi, const double* parameters,
                 double* sigma) const override {
    for (int h = 0; h < sizes.H; ++h) {
      const std::vector<double> p = own<double>(blocks(), sizes, h, parameters);
      for (int l = 0; l < sizes.L; ++l)
        sigma[h * sizes.L + l] = element_(chi[h * sizes.L + l], p.data());
    }
  }

  // The scores stay where they are.
  void forward(const Sizes& sizes, const double* parameters, double* u, double* /*state*/,
               double* mean) const override {
    std::fill_n(mean, static_cast<std::ptrdiff_t>(sizes.L) * kLanes, 0.0);
    const std::vector<BlockInfo> infos = blocks();
    for (int h = 0; h < sizes.H; ++h) {
      const std::vector<double> p = own<double>(infos, sizes, h, parameters);
      for (int l = 0; l < sizes.L; ++l) {
        const double* chi = lanes(u, h * sizes.L + l);
        for (int i = 0; i < kLanes; ++i) {
          lanes(mean, l)[i] += element_(chi[i], p.data()) / sizes.H;
        }
      }
    }
  }
  void backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                const double* /*state*/, double* grad) const override {
    const std::vector<BlockInfo> infos = blocks();
    for (int h = 0; h < sizes.H; ++h) {
      std::vector<Dual> p = own<Dual>(infos, sizes, h, parameters);
      const std::vector<int> where = positions(infos, sizes, h);
      for (int l = 0; l < sizes.L; ++l) {
        double* chi = lanes(u, h * sizes.L + l);
        for (int i = 0; i < kLanes; ++i) {
          const double pull = -lanes(s, l)[i] / sizes.H;
          for (std::size_t j = 0; j < p.size(); ++j) {
            p[j].tangent = 1;
            lanes(grad, where[j])[i] += pull * element_(Dual(chi[i]), p.data()).tangent;
            p[j].tangent = 0;
          }
          chi[i] = pull * element_(Dual(chi[i], 1.0), p.data()).tangent;
        }
      }
    }
  }
  std::size_t state_groups(const Sizes& /*sizes*/) const override { return 0; }

  Factorisation factorisation() const override {
    return headflow::Elementwise{std::make_shared<const Function>(element_, blocks())};
  }

 private:
  /// Which parameters belong to head h, one of each block.
  static std::vector<int> positions(const std::vector<BlockInfo>& infos, const Sizes& sizes,
                                    int h) {
    std::vector<int> out;
    int first = 0;
    for (const BlockInfo& info : infos) {
      if (info.axes.size() > 1 || (info.axes.size() == 1 && info.axes[0] != Axis::head)) {
        throw Error(fmt::format("the block {} is neither one number nor one a head", info.name));
      }
      out.push_back(info.axes.empty() ? first : first + h);
      first += info.axes.empty() ? 1 : sizes.H;
    }
    return out;
  }
  template <class S>
  static std::vector<S> own(const std::vector<BlockInfo>& infos, const Sizes& sizes, int h,
                            const double* parameters) {
    std::vector<S> out;
    for (const int i : positions(infos, sizes, h)) out.emplace_back(parameters[i]);
    return out;
  }

  class Function final : public ElementFunction {
   public:
    Function(const Element& element, std::vector<BlockInfo> infos)
        : element_(element), infos_(std::move(infos)) {}
    std::vector<int> own_parameters(const Sizes& sizes, int head) const override {
      return positions(infos_, sizes, head);
    }
    void evaluate(const Sizes& sizes, int head, const double* parameters, int count,
                  const double* chi, double* a, double* a1, double* a2,
                  double* const* by) const override {
      const std::vector<Taylor> fixed = own<Taylor>(infos_, sizes, head, parameters);
      std::vector<Dual> p = own<Dual>(infos_, sizes, head, parameters);
      for (int i = 0; i < count; ++i) {
        const Taylor y = element_(Taylor(chi[i], 1.0, 0.0), fixed.data());
        a[i] = y.value;
        a1[i] = y.first;
        a2[i] = y.second;
        for (std::size_t j = 0; j < p.size(); ++j) {
          p[j].tangent = 1;
          by[j][i] = element_(Dual(chi[i]), p.data()).tangent;
          p[j].tangent = 0;
        }
      }
    }

   private:
    Element element_;
    std::vector<BlockInfo> infos_;
  };

  Element element_;
};

}  // namespace headflow

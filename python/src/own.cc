// What C++ calls are functions of python/headflow/own.py, which know the user's and check what
// those return. They take and give whole blocks of samples, arrays (head, token, sample): the lock
// of Python is taken once a block, in whichever thread works on it. What they raise goes through
// the computation as a C++ exception, and becomes itself again where Python called.

#include "own.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/index.h"

namespace headflow::python {
namespace {

namespace nb = nanobind;

template <int dimensions>
using Array = nb::ndarray<const double, nb::ndim<dimensions>, nb::c_contig, nb::device::cpu>;

/// A method of an object of Python that somebody else keeps, the Problem of Python: to own it here,
/// beyond the sight of Python's collector, would keep it for ever where it knows its own problem.
class Method {
 public:
  Method(const nb::object& owner, const char* name)
      : owner_(nb::steal(PyWeakref_NewRef(owner.ptr(), nullptr))), name_(name) {
    if (!owner_.is_valid()) throw nb::python_error();
  }
  ~Method() {
    if (!Py_IsInitialized()) {
      owner_.release();
      return;
    }
    const nb::gil_scoped_acquire with_python;
    owner_.reset();
  }
  Method(const Method&) = delete;
  Method& operator=(const Method&) = delete;
  template <class... Arguments>
  nb::object operator()(const Arguments&... arguments) const {
    const nb::object owner = owner_();
    if (owner.is_none()) throw Error("a function of Python is gone: keep its headflow.Problem");
    return owner.attr(name_)(arguments...);
  }

 private:
  nb::object owner_;
  const char* name_;
};

/// An array of Python's own, which a function may change or keep, filled through `fill`.
template <class Fill>
nb::object new_array(const std::vector<std::size_t>& shape, const Fill& fill) {
  std::size_t size = 1;
  for (const std::size_t n : shape) size *= n;
  auto* values = new double[std::max<std::size_t>(size, 1)];
  const nb::capsule owner(values, [](void* p) noexcept { delete[] static_cast<double*>(p); });
  fill(values);
  return nb::cast(nb::ndarray<nb::numpy, double>(values, shape.size(), shape.data(), owner));
}

nb::object copied(const std::vector<std::size_t>& shape, const double* from) {
  return new_array(shape, [&](double* to) {
    std::size_t size = 1;
    for (const std::size_t n : shape) size *= n;
    std::copy_n(from, size, to);
  });
}

class OwnActivation final : public Activation {
 public:
  OwnActivation(std::string name, std::vector<BlockInfo> blocks, bool smooth, bool keeps_weights,
                const nb::object& calls)
      : name_(std::move(name)),
        blocks_(std::move(blocks)),
        smooth_(smooth),
        keeps_weights_(keeps_weights),
        forward_(calls, "sigma"),
        backward_(calls, "pull") {}

  std::string_view name() const override { return name_; }
  std::string_view formula() const override { return "a function of Python"; }
  std::vector<BlockInfo> blocks() const override { return blocks_; }
  bool smooth() const override { return smooth_; }

  // The scores stay where they are for `backward`, with the weights if it wants them.
  std::size_t state_groups(const Sizes& sizes) const override {
    return keeps_weights_ ? at(sizes.H) * at(sizes.L) : 0;
  }
  std::size_t preferred_groups(const Sizes& sizes) const override {
    return std::clamp<std::size_t>(kNumbers / kLanes / (at(sizes.H) * at(sizes.L)), 2, 512);
  }

  void attention(const Sizes& sizes, const double* chi, const double* parameters,
                 double* sigma) const override {
    const nb::gil_scoped_acquire with_python;
    const std::vector<std::size_t> shape = {at(sizes.H), at(sizes.L), 1};
    const auto found =
        nb::cast<Array<3>>(forward_(copied(shape, chi), copied({at(count(sizes))}, parameters)));
    check(sizes, 1, found.data(), "gives");
    std::copy_n(found.data(), at(sizes.H) * at(sizes.L), sigma);
  }

  void forward(const Sizes& sizes, const double* parameters, double* u, double* state,
               double* mean) const override {
    forward_groups(sizes, 1, parameters, u, state, mean);
  }
  void backward(const Sizes& sizes, const double* parameters, const double* s, double* u,
                const double* state, double* grad) const override {
    backward_groups(sizes, 1, parameters, s, u, state, grad);
  }

  void forward_groups(const Sizes& sizes, std::size_t groups, const double* parameters, double* u,
                      double* state, double* mean) const override {
    const nb::gil_scoped_acquire with_python;
    const std::size_t H = at(sizes.H), L = at(sizes.L);
    const auto found = nb::cast<Array<3>>(
        forward_(array(sizes, groups, u), copied({at(count(sizes))}, parameters)));
    check(sizes, groups * kLanes, found.data(), "gives");
    std::fill_n(mean, groups * L * kLanes, 0.0);
    const double* sigma = found.data();
    for (std::size_t j = 0; j < H * L; ++j) {
      for (std::size_t n = 0; n < groups; ++n, sigma += kLanes) {
        double* out = mean + (n * L + j % L) * kLanes;
        for (int i = 0; i < kLanes; ++i) out[i] += sigma[i];
      }
    }
    for (std::size_t j = 0; j < groups * L * kLanes; ++j) mean[j] /= sizes.H;
    if (keeps_weights_) put(sizes, groups, found.data(), state);
  }

  void backward_groups(const Sizes& sizes, std::size_t groups, const double* parameters,
                       const double* s, double* u, const double* state,
                       double* grad) const override {
    const nb::gil_scoped_acquire with_python;
    const std::size_t H = at(sizes.H), L = at(sizes.L), samples = groups * kLanes;
    const nb::object pull = new_array({H, L, samples}, [&](double* g) {
      for (std::size_t l = 0; l < L; ++l) {
        for (std::size_t n = 0; n < groups; ++n) {
          const double* from = s + (n * L + l) * kLanes;
          double* to = g + l * samples + n * kLanes;
          for (int i = 0; i < kLanes; ++i) to[i] = -from[i] / sizes.H;
        }
      }
      for (std::size_t h = 1; h < H; ++h) std::copy_n(g, L * samples, g + h * L * samples);
    });
    const nb::object weights = keeps_weights_ ? array(sizes, groups, state) : nb::none();
    const auto both = nb::cast<nb::tuple>(
        backward_(array(sizes, groups, u), pull, copied({at(count(sizes))}, parameters), weights));
    const auto of_chi = nb::cast<Array<3>>(nb::object(both[0]));
    const auto of_parameters = nb::cast<Array<2>>(nb::object(both[1]));
    check(sizes, samples, of_chi.data(), "has a derivative");
    put(sizes, groups, of_chi.data(), u);
    for (std::size_t j = 0; j < at(count(sizes)); ++j) {
      for (std::size_t k = 0; k < samples; ++k) {
        grad[j * kLanes + k % kLanes] += of_parameters.data()[j * samples + k];
      }
    }
  }

 private:
  static constexpr std::size_t kNumbers = 1 << 15;  ///< scores of a block: what a cache holds

  std::ptrdiff_t count(const Sizes& sizes) const {
    std::ptrdiff_t out = 0;
    for (const BlockInfo& one : blocks_) out += one.axes.empty() ? 1 : sizes.H;
    return out;
  }

  /// Groups of eight as an array (head, token, sample).
  static nb::object array(const Sizes& sizes, std::size_t groups, const double* u) {
    const std::size_t H = at(sizes.H), L = at(sizes.L);
    return new_array({H, L, groups * kLanes}, [&](double* chi) {
      for (std::size_t j = 0; j < H * L; ++j) {
        for (std::size_t n = 0; n < groups; ++n, chi += kLanes) {
          std::copy_n(u + (n * H * L + j) * kLanes, kLanes, chi);
        }
      }
    });
  }

  /// And back.
  static void put(const Sizes& sizes, std::size_t groups, const double* from, double* u) {
    const std::size_t all = at(sizes.H) * at(sizes.L);
    for (std::size_t j = 0; j < all; ++j) {
      for (std::size_t n = 0; n < groups; ++n, from += kLanes) {
        std::copy_n(from, kLanes, u + (n * all + j) * kLanes);
      }
    }
  }

  /// The numbers themselves where their sum says that one of them is not finite.
  void check(const Sizes& sizes, std::size_t samples, const double* values,
             const char* what) const {
    const std::size_t all = at(sizes.H) * at(sizes.L) * samples;
    const Eigen::Map<const Eigen::ArrayXd> numbers(values, static_cast<Eigen::Index>(all));
    if (std::isfinite(numbers.sum())) return;
    const double* first =
        std::find_if(values, values + all, [](double x) { return !std::isfinite(x); });
    if (first == values + all) return;
    const std::size_t j = static_cast<std::size_t>(first - values) / samples;
    throw Error(fmt::format("the activation {} {} {} (head {}, token {})", name_, what, *first,
                            j / at(sizes.L) + 1, j % at(sizes.L) + 1));
  }

  std::string name_;
  std::vector<BlockInfo> blocks_;
  bool smooth_, keeps_weights_;
  Method forward_, backward_;
};

void set_own_activation(Config& self, const std::string& name,
                        const std::vector<std::tuple<std::string, bool, double>>& blocks,
                        bool smooth, bool keeps_weights, const nb::object& calls) {
  std::vector<BlockInfo> infos;
  for (const auto& [block, per_head, initial] : blocks) {
    infos.push_back({block, "", per_head ? std::vector<Axis>{Axis::head} : std::vector<Axis>{},
                     [value = initial](const Sizes&) { return value; }});
  }
  self.problem.activation = name;
  self.problem.own_activation =
      std::make_shared<const OwnActivation>(name, std::move(infos), smooth, keeps_weights, calls);
}

Matrix matrix_of(const Array<2>& from) {
  return Eigen::Map<const Matrix>(from.data(), static_cast<Eigen::Index>(from.shape(0)),
                                  static_cast<Eigen::Index>(from.shape(1)));
}

void set_own_prior(Config& self, const std::string& name, const Array<2>& mean,
                   const Array<2>& covariance, const Array<2>& largest, const nb::object& calls) {
  const auto function = std::make_shared<const Method>(calls, "sample");
  const Vector mu = matrix_of(mean).row(0);
  const auto sample = [function, F = at(mu.size())](int count, const double* uniforms,
                                                    double* thetas) {
    const nb::gil_scoped_acquire with_python;
    const auto found = nb::cast<Array<2>>((*function)(copied({at(count)}, uniforms)));
    std::copy_n(found.data(), at(count) * F, thetas);
  };
  self.problem.prior = name;
  self.problem.own_prior = {
      name, prior_of_uniforms(mu, matrix_of(covariance), matrix_of(largest).row(0), sample)};
}

}  // namespace

void bind_own(nb::class_<Config>& config) {
  config
      .def("set_own_activation", &set_own_activation, nb::arg("name"), nb::arg("blocks"),
           nb::arg("smooth"), nb::arg("keeps_weights"), nb::arg("calls"),
           "Blocks are (name, one a head?, initial value); calls.sigma(chi, parameters) and "
           "calls.pull(chi, g, parameters, weights or None) are kept alive by the caller.")
      .def("set_own_prior", &set_own_prior, nb::arg("name"), nb::arg("mean"), nb::arg("covariance"),
           nb::arg("largest"), nb::arg("calls"),
           "calls.sample(uniforms) is kept alive by the caller.")
      .def(
          "set_block",
          [](Config& self, const std::string& name, bool initial, const Array<2>& values) {
            (initial ? self.flow.init_blocks : self.point.blocks)[name] = matrix_of(values);
          },
          nb::arg("name"), nb::arg("initial"), nb::arg("values"),
          "A block that may be no key of the table, of [point] or where the flow starts.");
}

}  // namespace headflow::python

#include "evaluator.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "core/error.h"
#include "expectation/check_engine.h"
#include "expectation/engine.h"
#include "python_dataset.h"
#include "study/config.h"

namespace headflow::python {
namespace {

/// The nodes are placed for the first point, and again where they no longer serve. Threads take
/// turns: an engine has scratch space of its own.
class Evaluator {
 public:
  Evaluator(const Config& config, const Config& first)
      : problem_(config.problem), point_(first.point.make(problem_)) {
    check_engine(problem_, config.run);
    const Context context =
        config.program.threads == 1 ? Context{} : Context::threads(config.program.threads);
    engine_ = make_engine(problem_, config.run, {&point_, false}, context);
    engine_->adapt(point_);
  }

  /// [m, R, blocks] flat, in the order of Point::packed.
  void evaluate(const double* packed, bool errors, Evaluation& out) {
    const std::lock_guard<std::mutex> lock(mutex_);
    point_.unpack(packed);
    problem_.check(point_);
    const Frame& frame = problem_.frame();
    if (frame.is_identity()) {
      at(point_, errors, out);
      return;
    }
    at(frame.enter(point_), errors, out);
    out.grad = frame.leave_gradient(std::move(out.grad));
    if (errors) out.grad_error = frame.leave_gradient_error(std::move(out.grad_error));
  }

  const Problem& problem() const { return problem_; }
  /// Something of the engine, which another thread may be at.
  template <class Ask>
  auto ask(const Ask& question) {
    const nb::gil_scoped_release without_python;
    const std::lock_guard<std::mutex> lock(mutex_);
    return question(*engine_);
  }
  Eigen::Index size() const { return point_.size(); }

 private:
  void at(const Point& point, bool errors, Evaluation& out) {
    engine_->follow(point);
    engine_->evaluate(point, {.loss_error = errors, .gradient_error = errors}, out);
  }

  std::mutex mutex_;
  Problem problem_;
  Point point_;
  std::unique_ptr<Engine> engine_;
};

using Packed = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_size(const Evaluator& self, const Packed& packed) {
  if (static_cast<Eigen::Index>(packed.size()) == self.size()) return;
  throw Error(fmt::format("the point has {} numbers, not {}", packed.size(), self.size()));
}

/// loss, its error, the gradient and its error, flat; errors are None if not asked for.
nb::tuple evaluate(Evaluator& self, const Packed& packed, bool errors) {
  check_size(self, packed);
  Evaluation out;
  {
    const nb::gil_scoped_release without_python;
    self.evaluate(packed.data(), errors, out);
  }
  if (!errors)
    return nb::make_tuple(out.loss, nb::none(), python_array(out.grad.packed()), nb::none());
  return nb::make_tuple(out.loss, out.loss_error, python_array(out.grad.packed()),
                        python_array(out.grad_error.packed()));
}

/// Seconds of an evaluation in C++, the mean of `times`: what a call from Python is compared with.
double seconds(Evaluator& self, const Packed& packed, bool errors, int times) {
  check_size(self, packed);
  const nb::gil_scoped_release without_python;
  Evaluation out;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < times; ++i) self.evaluate(packed.data(), errors, out);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() / times;
}

}  // namespace

void bind_evaluator(nb::module_& module) {
  nb::class_<Evaluator>(module, "Evaluator", "Loss and gradient at many points of one problem.")
      .def(
          "__init__",
          [](Evaluator* self, const Config& config, const Config& first) {
            const nb::gil_scoped_release without_python;
            new (self) Evaluator(config, first);
          },
          nb::arg("config"), nb::arg("first"))
      .def("evaluate", &evaluate, nb::arg("packed"), nb::arg("errors"),
           nb::sig("def evaluate(self, packed: NDArray[numpy.float64], errors: bool) -> "
                   "tuple[float, float | None, NDArray[numpy.float64], NDArray[numpy.float64] | "
                   "None]"))
      .def("seconds", &seconds, nb::arg("packed"), nb::arg("errors"), nb::arg("times"))
      .def_prop_ro("engine",
                   [](Evaluator& self) {
                     return self.ask([](const Engine& e) { return std::string(e.name()); });
                   })
      .def_prop_ro(
          "error_kind",
          [](Evaluator& self) {
            return self.ask([](const Engine& e) { return std::string(to_string(e.error_kind())); });
          })
      .def_prop_ro(
          "samples",
          [](Evaluator& self) { return self.ask([](const Engine& e) { return e.samples(); }); })
      .def_prop_ro(
          "reason",
          [](Evaluator& self) { return self.ask([](const Engine& e) { return e.reason(); }); })
      .def_prop_ro("heads", [](const Evaluator& self) { return self.problem().H(); })
      .def_prop_ro("features", [](const Evaluator& self) { return self.problem().F(); })
      .def_prop_ro(
          "start",
          [](const Evaluator& self) { return python_array(self.problem().start_point().packed()); })
      .def_prop_ro(
          "blocks",
          [](const Evaluator& self) {
            nb::list out;
            for (const BlockLayout::Entry& e : self.problem().layout()->entries()) {
              nb::list shape;
              for (const Eigen::Index n : e.shape) shape.append(static_cast<std::int64_t>(n));
              out.append(nb::make_tuple(e.info.name, static_cast<std::int64_t>(e.offset),
                                        static_cast<std::int64_t>(e.size), nb::tuple(shape)));
            }
            return out;
          },
          nb::sig("def blocks(self) -> list[tuple[str, int, int, tuple[int, ...]]]"));
}

}  // namespace headflow::python

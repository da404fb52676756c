#include <arkode/arkode_erkstep.h>
#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sunmatrix/sunmatrix_dense.h>

#include <cmath>
#include <exception>
#include <sundials/sundials_context.hpp>
#include <utility>

#include "core/error.h"
#include "dynamics/integrator.h"
#include "dynamics/stoppable_lu.h"

namespace headflow {
namespace {

constexpr long kMostInternalSteps = 1'000'000'000;
constexpr double kHorizon = 1e3;  // one-step mode only takes the scale of the first step from it

struct FreeVector {
  void operator()(N_Vector v) const { N_VDestroy(v); }
};
using OwnedVector = std::unique_ptr<std::remove_pointer_t<N_Vector>, FreeVector>;

/// What both SUNDIALS integrators share: the field, a context and vectors.
class SundialsIntegrator : public Integrator {
 public:
  SundialsIntegrator(const Field& field, const Vector& y0)
      : field_(field),
        size_(y0.size()),
        y_(N_VNew_Serial(size_, context_)),
        scratch_(N_VNew_Serial(size_, context_)) {
    std::copy_n(y0.data(), size_, N_VGetArrayPointer(y_.get()));
  }

  std::string why() const override { return why_; }
  double time() const override { return time_; }

  double speed() const override {
    if (!dense_output(time_, 1)) return HUGE_VAL;
    return Eigen::Map<const Vector>(N_VGetArrayPointer(scratch_.get()), size_).norm();
  }

  void state(double time, double* y) const override {
    if (time_ == 0.0 || !dense_output(time, 0)) {
      std::copy_n(N_VGetArrayPointer(y_.get()), size_, y);
    } else {
      std::copy_n(N_VGetArrayPointer(scratch_.get()), size_, y);
    }
  }

 protected:
  /// Right-hand side in SUNDIALS' form: 1 (recoverable, try a smaller step) if not finite. What is
  /// thrown must not pass through the library's C: it is kept, and thrown again by `rethrow`.
  static int right_hand_side(double /*time*/, N_Vector y, N_Vector out, void* self) {
    auto* integrator = static_cast<SundialsIntegrator*>(self);
    try {
      return integrator->field_(N_VGetArrayPointer(y), N_VGetArrayPointer(out)) ? 0 : 1;
    } catch (...) {
      integrator->thrown_ = std::current_exception();
      return -1;
    }
  }

  void rethrow() {
    if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
  }

  static void require(int flag, const char* what) {
    if (flag < 0) throw Error(fmt::format("SUNDIALS could not be set up: {} ({})", what, flag));
  }

  /// Derivative number k of the interpolant, into scratch_.
  virtual bool dense_output(double time, int k) const = 0;

  Field field_;
  sundials::Context context_;
  Eigen::Index size_;
  OwnedVector y_, scratch_;
  double time_ = 0;
  std::string why_;
  std::exception_ptr thrown_;
};

class Explicit final : public SundialsIntegrator {
 public:
  Explicit(const Field& field, const Vector& y0, double relative, double absolute)
      : SundialsIntegrator(field, y0),
        memory_(ERKStepCreate(right_hand_side, 0.0, y_.get(), context_)) {
    require(ERKStepSetUserData(memory_, static_cast<SundialsIntegrator*>(this)), "user data");
    require(ERKStepSStolerances(memory_, relative, absolute), "tolerances");
    require(ERKStepSetMaxNumSteps(memory_, kMostInternalSteps), "number of steps");
    require(ERKStepSetErrFile(memory_, nullptr), "error file");
  }
  ~Explicit() override { ERKStepFree(&memory_); }

  int order() const override { return 4; }

  bool advance() override {
    const int flag = ERKStepEvolve(memory_, time_ + kHorizon, y_.get(), &time_, ARK_ONE_STEP);
    rethrow();
    if (flag >= 0) return true;
    char* name = ERKStepGetReturnFlagName(flag);
    why_ = fmt::format("ARKODE could not take a step at tau = {:.6g} ({})", time_, name);
    std::free(name);
    return false;
  }

 private:
  bool dense_output(double time, int k) const override {
    return ERKStepGetDky(memory_, time, k, scratch_.get()) >= 0;
  }
  void* memory_;
};

class Implicit final : public SundialsIntegrator {
 public:
  Implicit(const Field& field, const Vector& y0, double relative, double absolute,
           const Context& context, const FieldSlopes& slopes)
      : SundialsIntegrator(field, y0),
        slopes_(slopes),
        observed_(context),
        memory_(CVodeCreate(CV_BDF, context_)),
        jacobian_(SUNDenseMatrix(size_, size_, context_)),
        solver_(SUNLinSolNewEmpty(context_)) {
    if (!memory_ || !jacobian_ || !solver_) throw std::bad_alloc();
    solver_->content = this;
    solver_->ops->gettype = [](SUNLinearSolver) { return SUNLINEARSOLVER_DIRECT; };
    solver_->ops->setup = [](SUNLinearSolver solver, SUNMatrix matrix) {
      return static_cast<Implicit*>(solver->content)->set_up(matrix);
    };
    solver_->ops->solve = [](SUNLinearSolver solver, SUNMatrix matrix, N_Vector x, N_Vector b,
                             sunrealtype) {
      auto* self = static_cast<Implicit*>(solver->content);
      N_VScale(1.0, b, x);
      solve_factorised(static_cast<std::size_t>(self->size_), SM_COLS_D(matrix), self->pivots_,
                       N_VGetArrayPointer(x));
      return static_cast<int>(SUNLS_SUCCESS);
    };
    require(CVodeInit(memory_, right_hand_side, 0.0, y_.get()), "initial state");
    require(CVodeSetUserData(memory_, static_cast<SundialsIntegrator*>(this)), "user data");
    require(CVodeSStolerances(memory_, relative, absolute), "tolerances");
    require(CVodeSetMaxNumSteps(memory_, kMostInternalSteps), "number of steps");
    require(CVodeSetLinearSolver(memory_, solver_, jacobian_), "linear solver");
    if (slopes_) require(CVodeSetJacFn(memory_, jacobian), "Jacobian");
    require(CVodeSetErrFile(memory_, nullptr), "error file");
  }
  ~Implicit() override {
    CVodeFree(&memory_);
    SUNLinSolFreeEmpty(solver_);
    SUNMatDestroy(jacobian_);
  }

  int order() const override { return 5; }

  bool advance() override {
    const int flag = CVode(memory_, time_ + kHorizon, y_.get(), &time_, CV_ONE_STEP);
    rethrow();
    if (flag >= 0) return true;
    char* name = CVodeGetReturnFlagName(flag);
    why_ = fmt::format("CVODE could not take a step at tau = {:.6g} ({})", time_, name);
    std::free(name);
    return false;
  }

 private:
  bool dense_output(double time, int k) const override {
    return CVodeGetDky(memory_, time, k, scratch_.get()) >= 0;
  }
  static int jacobian(double /*time*/, N_Vector y, N_Vector /*velocity*/, SUNMatrix out, void* self,
                      N_Vector /*a*/, N_Vector /*b*/, N_Vector /*c*/) {
    auto* integrator = static_cast<Implicit*>(static_cast<SundialsIntegrator*>(self));
    try {
      return integrator->slopes_(N_VGetArrayPointer(y), SM_DATA_D(out)) ? 0 : 1;
    } catch (...) {
      integrator->thrown_ = std::current_exception();
      return -1;
    }
  }
  int set_up(SUNMatrix matrix) {
    switch (factorise(static_cast<std::size_t>(size_), SM_COLS_D(matrix), pivots_, observed_)) {
      case LuOutcome::done: return SUNLS_SUCCESS;
      case LuOutcome::singular: return SUNLS_LUFACT_FAIL;
      case LuOutcome::stopped: thrown_ = std::make_exception_ptr(Interrupted());
    }
    return SUNLS_PACKAGE_FAIL_UNREC;
  }

  FieldSlopes slopes_;
  Context observed_;
  std::vector<std::size_t> pivots_;
  void* memory_;
  SUNMatrix jacobian_;
  SUNLinearSolver solver_;
};

}  // namespace

std::unique_ptr<Integrator> make_explicit(const Field& field, const Vector& y0, double relative,
                                          double absolute) {
  return std::make_unique<Explicit>(field, y0, relative, absolute);
}

std::unique_ptr<Integrator> make_implicit(const Field& field, const Vector& y0, double relative,
                                          double absolute, const Context& context,
                                          const FieldSlopes& slopes) {
  return std::make_unique<Implicit>(field, y0, relative, absolute, context, slopes);
}

}  // namespace headflow

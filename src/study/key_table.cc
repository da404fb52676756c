// The table of keys itself: one line each.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/suggest.h"
#include "core/tolerance.h"
#include "study/keys.h"
#include "study/parse_numbers.h"

namespace headflow {
namespace {

[[noreturn]] void wrong_kind(const std::string& key, const Value& value, std::string_view kind) {
  throw OptionError(key, shortened(value_text(value)), fmt::format("must be {}", kind));
}

std::int64_t as_integer(const std::string& key, const Value& value) {
  if (const auto* i = std::get_if<std::int64_t>(&value)) return *i;
  if (const auto* x = std::get_if<double>(&value)) {
    if (*x == std::floor(*x) && std::abs(*x) < 0x1p62) return static_cast<std::int64_t>(*x);
  }
  wrong_kind(key, value, "an integer");
}

double as_number(const std::string& key, const Value& value) {
  const auto x = to_number(value);
  if (x && std::isfinite(*x)) return *x;
  wrong_kind(key, value, x ? "a finite number" : "a number");
}

Matrix as_matrix(const std::string& key, const Value& value) {
  if (const auto* m = std::get_if<Matrix>(&value)) {
    if (m->size() == 0) wrong_kind(key, value, "one number or more, not an empty list");
    if (!m->allFinite()) wrong_kind(key, value, "finite numbers");
    return *m;
  }
  if (!std::holds_alternative<std::int64_t>(value) && !std::holds_alternative<double>(value)) {
    wrong_kind(
        key, value,
        "numbers: 1.0, [1.0, 2.0] or [[1.0, 2.0], [3.0, 4.0]]; in a text 1,2;3,4, separated by "
        "commas, rows by semicolons");
  }
  return Matrix::Constant(1, 1, as_number(key, value));
}

std::string as_text(const std::string& key, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  wrong_kind(key, value, "text in quotes");
}

Names as_names(const std::string& key, const Value& value) {
  if (const auto* names = std::get_if<Names>(&value)) return *names;
  if (const auto* text = std::get_if<std::string>(&value)) {
    return std::get<Names>(parse_value(ValueKind::names, *text));
  }
  wrong_kind(key, value, "names in quotes");
}

// How a field of each type is read and written.
template <class T>
struct Field;

template <>
struct Field<std::string> {
  static constexpr ValueKind kind = ValueKind::text;
  static std::optional<Value> get(const std::string& x) { return x; }
  static std::string from(const std::string& key, const Value& v) { return as_text(key, v); }
};
template <>
struct Field<std::int64_t> {
  static constexpr ValueKind kind = ValueKind::integer;
  static std::optional<Value> get(std::int64_t x) { return x; }
  static std::int64_t from(const std::string& key, const Value& v) { return as_integer(key, v); }
};
template <>
struct Field<int> {
  static constexpr ValueKind kind = ValueKind::integer;
  static std::optional<Value> get(int x) { return std::int64_t{x}; }
  static int from(const std::string& key, const Value& v) {
    const std::int64_t i = as_integer(key, v);
    if (i < std::numeric_limits<int>::min() || i > std::numeric_limits<int>::max()) {
      wrong_kind(key, v, "an integer of at most nine digits");
    }
    return static_cast<int>(i);
  }
};
template <>
struct Field<std::uint64_t> {
  static constexpr ValueKind kind = ValueKind::integer;
  static std::optional<Value> get(std::uint64_t x) { return static_cast<std::int64_t>(x); }
  static std::uint64_t from(const std::string& key, const Value& v) {
    const std::int64_t i = as_integer(key, v);
    if (i < 0) wrong_kind(key, v, "an integer that is not negative");
    return static_cast<std::uint64_t>(i);
  }
};
template <>
struct Field<double> {
  static constexpr ValueKind kind = ValueKind::number;
  static std::optional<Value> get(double x) { return x; }
  static double from(const std::string& key, const Value& v) { return as_number(key, v); }
};
template <>
struct Field<Matrix> {
  static constexpr ValueKind kind = ValueKind::matrix;
  static std::optional<Value> get(const Matrix& x) { return x; }
  static Matrix from(const std::string& key, const Value& v) { return as_matrix(key, v); }
};
template <>
struct Field<FileTime> {
  static constexpr ValueKind kind = ValueKind::text;
  static std::optional<Value> get(const FileTime& x) { return to_text(x); }
  static FileTime from(const std::string& key, const Value& v) {
    const auto* text = std::get_if<std::string>(&v);
    if (!text) return as_number(key, v);
    if (const auto number = parse_number(*text)) return *number;
    return from_name<Moment>(key, *text);
  }
};
template <>
struct Field<Names> {
  static constexpr ValueKind kind = ValueKind::names;
  static std::optional<Value> get(const Names& x) { return x; }
  static Names from(const std::string& key, const Value& v) { return as_names(key, v); }
};
template <Choice E>
struct Field<E> {
  static constexpr ValueKind kind = ValueKind::text;
  static std::optional<Value> get(E x) { return std::string(to_string(x)); }
  static E from(const std::string& key, const Value& v) {
    return from_name<E>(key, as_text(key, v));
  }
};
template <Choice E>
struct Field<std::vector<E>> {
  static constexpr ValueKind kind = ValueKind::names;
  static std::optional<Value> get(const std::vector<E>& x) {
    Names out;
    for (const E one : x) out.emplace_back(to_string(one));
    return out;
  }
  static std::vector<E> from(const std::string& key, const Value& v) {
    std::vector<E> out;
    for (const std::string& one : as_names(key, v)) out.push_back(from_name<E>(key, one));
    return out;
  }
};
template <class T>
struct Field<std::optional<T>> {
  static constexpr ValueKind kind = Field<T>::kind;
  static std::optional<Value> get(const std::optional<T>& x) {
    return x ? Field<T>::get(*x) : std::nullopt;
  }
  static std::optional<T> from(const std::string& key, const Value& v) {
    return Field<T>::from(key, v);
  }
};

/// The words of a choice.
template <class T>
struct Words {
  static Names all() { return {}; }
};
template <Choice E>
struct Words<E> {
  static Names all() { return names_of<E>(); }
};
template <Choice E>
struct Words<std::vector<E>> {
  static Names all() { return names_of<E>(); }
};

class Table {
 public:
  /// `field`: from a Config& or const Config& to the field.
  template <class F>
  Key& add(const char* section, const std::string& name, const F& field, const std::string& help) {
    using T = std::remove_cvref_t<decltype(field(std::declval<Config&>()))>;
    Key key{section, name, help, Field<T>::kind, Words<T>::all(), "", {}, {}};
    key.get = [field](const Config& config) {
      return Field<T>::get(field(const_cast<Config&>(config)));  // NOLINT: it is only read
    };
    key.set = [field, full = key.full_name()](Config& config, const Value& value) {
      field(config) = Field<T>::from(full, value);
    };
    keys.push_back(std::move(key));
    return keys.back();
  }

  /// An entry of a map of matrices.
  template <class F>
  void add_entry(const char* section, const std::string& name, const std::string& entry,
                 const F& map, const std::string& help) {
    Key key{section, name, help, ValueKind::matrix, {}, "", {}, {}};
    key.get = [map, entry](const Config& config) -> std::optional<Value> {
      const auto& all = map(const_cast<Config&>(config));  // NOLINT: it is only read
      const auto it = all.find(entry);
      if (it == all.end()) return std::nullopt;
      return it->second;
    };
    key.set = [map, entry, full = key.full_name()](Config& config, const Value& value) {
      map(config)[entry] = as_matrix(full, value);
    };
    keys.push_back(std::move(key));
  }

  std::vector<Key> keys;
};

/// What is said of each name, and whose it is.
using Help = std::map<std::string, std::string>;

void add_help(Help& help, const std::string& name, std::string_view text, std::string_view owner,
              const char* kind) {
  std::string& all = help[name];
  all += all.empty() ? fmt::format("{} ({}{}", text, kind, owner) : fmt::format(", {}", owner);
}

Help help_of_parameters() {
  Help out;
  for (const PriorInfo* prior : priors()) {
    for (const ParameterInfo& one : prior->parameters) {
      add_help(out, std::string(one.name), one.help, prior->name, "prior ");
    }
  }
  return out;
}

Help help_of_blocks() {
  Help out;
  for (const auto& activation : activations()) {
    for (const BlockInfo& block : activation->blocks()) {
      add_help(out, block.name, block.meaning, activation->name(), "");
    }
  }
  return out;
}

// A field of a table: HEADFLOW_FIELD(flow, rtol) is config.flow.rtol.
#define HEADFLOW_FIELD(section, field) \
  ([](Config & config) -> auto& { return config.section.field; })

void add_problem(Table& t) {
  Names activation_names, prior_names;
  Names formulas;
  for (const auto& a : activations()) {
    activation_names.emplace_back(a->name());
    formulas.push_back(fmt::format("{} = {}", a->name(), a->formula()));
  }
  for (const PriorInfo* p : priors()) prior_names.emplace_back(p->name);
  t.add("problem", "activation", HEADFLOW_FIELD(problem, activation),
        fmt::format("normalisation of the attention, sigma_hl: {}", fmt::join(formulas, "; ")))
      .choices = activation_names;
  t.add("problem", "prior", HEADFLOW_FIELD(problem, prior),
        fmt::format("law of the feature weights theta: {}", fmt::join(prior_names, ", ")))
      .choices = prior_names;
  t.add("problem", "tokens", HEADFLOW_FIELD(problem, tokens), "L, tokens of a sequence");
  t.add("problem", "heads", HEADFLOW_FIELD(problem, heads), "H, attention heads");
  t.add("problem", "features", HEADFLOW_FIELD(problem, features), "F, hidden directions");
  t.add("problem", "eta", HEADFLOW_FIELD(problem, eta),
        "initial norm of a head, k_h ~ N(0, eta^2 I/D)");
  Names trained = {"m", "R"};
  for (const auto& [name, help] : help_of_blocks()) trained.push_back(name);
  t.add("problem", "train", HEADFLOW_FIELD(problem, train),
        "what is trained, separated by commas: m, R and blocks of the activation (default: all)")
      .choices = trained;
  t.add("problem", "p", HEADFLOW_FIELD(problem, p),
        "overlaps p_ff' = k*_f . k*_f' of the hidden directions, F x F (default: I)");
  for (const auto& [name, help] : help_of_parameters()) {
    t.add_entry("problem", name, name, HEADFLOW_FIELD(problem, prior_parameters), help + ")");
  }
}

void add_point(Table& t) {
  t.add("point", "m", HEADFLOW_FIELD(point, m), "overlaps m_hf = k_h . k*_f, H x F (default 0)");
  t.add("point", "R", HEADFLOW_FIELD(point, R), "orthogonal parts R, H x H (default eta I)");
  for (const auto& [name, help] : help_of_blocks()) {
    t.add_entry("point", name, name, HEADFLOW_FIELD(point, blocks), help + ")");
  }
}

void add_run(Table& t) {
  t.add("run", "engine", HEADFLOW_FIELD(run, engine),
        "how expectations are computed: auto (the cheapest that meets the tolerance), factorised, "
        "qmc, mc");
  t.add(
      "run", "tolerance", HEADFLOW_FIELD(run, tolerance),
      fmt::format("absolute error asked of the engines auto and factorised, and of bayes: {} to {}",
                  kFinestTolerance, kCoarsestTolerance));
  t.add("run", "samples", HEADFLOW_FIELD(run, samples),
        "samples of mc, points of qmc (0: 100,000)");
  t.add("run", "randomisations", HEADFLOW_FIELD(run, randomisations),
        "independent randomisations of qmc");
  t.add("run", "seed", HEADFLOW_FIELD(run, seed), "seed of every random number");
  t.add("run", "precision", HEADFLOW_FIELD(run, precision),
        "storage of the samples: float64 or float32");
}

void add_flow(Table& t) {
  t.add("flow", "init", HEADFLOW_FIELD(flow, init),
        "start from noise (the paper's initial law), point ([point]) or file (init_from)");
  t.add("flow", "init_noise", HEADFLOW_FIELD(flow, init_noise),
        "standard deviation of the noise in m and R at the start (default 0.01; around a point or "
        "a file 0)");
  for (const auto& [name, help] : help_of_blocks()) {
    t.add_entry("flow", "init_" + name, name, HEADFLOW_FIELD(flow, init_blocks),
                "at the start, one number or all: " + help + ")");
  }
  t.add("flow", "init_from", HEADFLOW_FIELD(flow, init_from),
        "start where a recorded run was: a result file of flow, sgd, compare, "
        "fixed-point or minima")
      .files = "*.nc";
  t.add("flow", "init_run", HEADFLOW_FIELD(flow, init_run),
        "number of the run, or of the minimum, in that file, from 1");
  t.add("flow", "init_time", HEADFLOW_FIELD(flow, init_time),
        "time in that file: first, last, or a number (the nearest recorded time is taken)");
  t.add("flow", "time", HEADFLOW_FIELD(flow, time), "stop at this tau");
  t.add("flow", "gradient_tolerance", HEADFLOW_FIELD(flow, gradient_tolerance),
        "stop when the norm of the gradient is below this (0: never)");
  t.add(
      "flow", "integrator", HEADFLOW_FIELD(flow, integrator),
      "euler (fixed step), explicit (adaptive), implicit (adaptive, for long times), map (steps "
      "of SGD at a learning rate of order one) or first-order (adaptive, the map to first order)");
  t.add("flow", "step", HEADFLOW_FIELD(flow, step),
        "Euler's step; the learning rate of map and first-order");
  t.add("flow", "rtol", HEADFLOW_FIELD(flow, rtol), "relative tolerance of an adaptive step");
  t.add("flow", "atol", HEADFLOW_FIELD(flow, atol), "absolute tolerance of an adaptive step");
  t.add("flow", "kappa", HEADFLOW_FIELD(flow, kappa),
        "learning rate x D / batch size: noise of SGD kept in the limit (0: gradient flow)");
  t.add("flow", "sampling", HEADFLOW_FIELD(flow, sampling),
        "samples fixed for the run, or redrawn at each step of euler or map");
  t.add("flow", "outputs", HEADFLOW_FIELD(flow, outputs), "number of output times besides tau = 0");
  t.add("flow", "spacing", HEADFLOW_FIELD(flow, spacing), "of the output times: linear or log");
  t.add("flow", "first_output", HEADFLOW_FIELD(flow, first_output),
        "first output time after 0 with log spacing");
}

void add_sgd(Table& t) {
  t.add("sgd", "method", HEADFLOW_FIELD(sgd, method),
        "reduced (exact in law, cost independent of D) or direct (vectors of dimension D)");
  t.add("sgd", "dim", HEADFLOW_FIELD(sgd, dim),
        "D, dimension of a token; at least features + heads");
  t.add("sgd", "batch", HEADFLOW_FIELD(sgd, batch), "fresh samples of a step");
  t.add("sgd", "lr", HEADFLOW_FIELD(sgd, lr), "learning rate gamma");
  t.add("sgd", "steps", HEADFLOW_FIELD(sgd, steps), "number of steps (0: tau / lr)");
  t.add("sgd", "tau", HEADFLOW_FIELD(sgd, tau), "training time lr x steps, used if steps is 0");
  t.add("sgd", "runs", HEADFLOW_FIELD(sgd, runs), "independent runs");
  t.add("sgd", "first_run", HEADFLOW_FIELD(sgd, first_run),
        "number of the first run: more independent runs of the same seed");
  t.add("sgd", "init", HEADFLOW_FIELD(sgd, init),
        "start from law (the exact law of the overlaps at D) or point ([point], problem.p)");
  t.add("sgd", "outputs", HEADFLOW_FIELD(sgd, outputs), "number of output times besides 0");
  t.add("sgd", "spacing", HEADFLOW_FIELD(sgd, spacing), "of the output times: linear or log");
  t.add("sgd", "loss", HEADFLOW_FIELD(sgd, loss),
        "recorded loss: batch, or population (that of the limit of large D, by [run] engine, too)");
  t.add("compare", "theory", HEADFLOW_FIELD(compare, theory),
        "what SGD is compared with, separated by commas: flow (gradient flow), kappa (the flow "
        "that keeps the noise, kappa = lr dim / batch), first-order (that and the finite steps, to "
        "first order in lr), map (the one-step map)");
  t.add("compare", "rtol", HEADFLOW_FIELD(compare, rtol), "relative tolerance of the flow's steps");
  t.add("compare", "atol", HEADFLOW_FIELD(compare, atol), "absolute tolerance of the flow's steps");
}

void add_others(Table& t) {
  t.add("loss", "excess", HEADFLOW_FIELD(loss, excess),
        "points for the excess risk, the loss above the Bayes risk: E sum_l (a_l - p_l)^2 over the "
        "mean attention a and the posterior p (0: not computed; 100000 is a good number)");
  t.add("hessian", "at", HEADFLOW_FIELD(hessian, at),
        "where: point ([point]), origin (m = R = 0, b as given, attention 1/L) or saddle (where "
        "the flow of equal heads ends)");
  t.add("minima", "starts", HEADFLOW_FIELD(minima, starts), "number of starts");
  t.add("end", "gradient", HEADFLOW_FIELD(end, gradient),
        "norm of the gradient below which training has ended");
  t.add("end", "search", HEADFLOW_FIELD(end, search),
        "newton (past saddles, with the Hessian's signs) or flow (no Hessian; not beyond "
        "flow.time)");
  t.add("verify", "effort", HEADFLOW_FIELD(verify, effort),
        "quick (fewer runs, samples and starts) or full: the same statements");
  t.add(
      "verify", "only", HEADFLOW_FIELD(verify, only),
      "only these statements, separated by commas, as in III.4,A.1 or 'Erratum 4' (default: all)");
  t.add("verify", "results", HEADFLOW_FIELD(verify, results),
        "folder of `headflow reproduce`: training that figures and statements have in common is "
        "taken from there, if this very program has computed it; the numbers are the same")
      .files = "*";
  t.add("program", "memory", HEADFLOW_FIELD(run, memory),
        "MiB of samples to keep in memory; beyond, they are made anew, with the same result");
  t.add("program", "threads", HEADFLOW_FIELD(program, threads),
        "threads, 0 for all cores; never changes a result");
  t.add("result", "checkpoint_seconds", HEADFLOW_FIELD(result, checkpoint_seconds),
        "time between two checkpoints of sgd, written beside the result file");
  t.add("result", "save_init", HEADFLOW_FIELD(result, save_init),
        "file for the start of sgd alone, as flow.init_from reads it")
      .files = "*";
  t.add("result", "output", HEADFLOW_FIELD(result, output),
        "result file (netCDF; JSON for verify); for reproduce, a folder; for plot, a picture")
      .files = "*";
}

#undef HEADFLOW_FIELD

}  // namespace

const std::vector<Key>& keys() {
  static const std::vector<Key> all = [] {
    close_activations();
    close_priors();
    Table table;
    add_problem(table);
    add_point(table);
    add_run(table);
    add_flow(table);
    add_sgd(table);
    add_others(table);
    return std::move(table.keys);
  }();
  return all;
}

}  // namespace headflow

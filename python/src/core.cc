// The compiled part of the Python package: configurations, computations and evaluators. What a
// Python developer sees is written in Python (python/headflow/).

#include <nanobind/nanobind.h>

#include "core/error.h"
#include "evaluator.h"
#include "own.h"
#include "python_dataset.h"
#include "study/computations.h"
#include "study/keys.h"
#include "study/settings.h"
#include "study/version.h"
#include "sweep.h"
#include "values.h"
#include "verify/compute_verify.h"
#include "watch.h"

namespace headflow::python {
namespace {

nb::tuple described(const Key& key) {
  static constexpr const char* kKinds[] = {"integer", "number", "text", "matrix", "names"};
  return nb::make_tuple(key.full_name(), key.help, kKinds[static_cast<int>(key.kind)], key.choices);
}

/// The start of a flow, as the program resolves it before it computes and records anything.
Config settled(Config config, bool trains) {
  if (trains) config.flow.init_noise = config.flow.noise();
  return config;
}

/// (dataset, was it interrupted?); the dataset is None if there is none.
nb::tuple compute(const std::string& name, const Config& given, const nb::object& told) {
  const Computation& computation = find_computation(name);
  const Config config = settled(given, computation.trains);
  std::optional<Dataset> out;
  const bool interrupted =
      run_watched([&](const Context& context) { out = computation.compute(config, context); },
                  config.program.threads, told);
  return nb::make_tuple(out ? python_dataset(std::move(*out)) : nb::none(), interrupted);
}

nb::tuple verify(const Config& config, const nb::object& told) {
  std::optional<Dataset> out;
  const bool interrupted =
      run_watched([&](const Context& context) { out = compute_verify(config, context); },
                  config.program.threads, told);
  return nb::make_tuple(out ? python_dataset(std::move(*out)) : nb::none(), interrupted);
}

void raise(const char* type, const std::string& message, const OptionError* option = nullptr) {
  const nb::object error = nb::module_::import_("headflow.errors").attr(type);
  const nb::object instance =
      option ? error(message, option->key(), option->value(), option->rule()) : error(message);
  PyErr_SetObject(error.ptr(), instance.ptr());
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const OptionError& error) {
    raise("OptionError", error.what(), &error);
  } catch (const FileError& error) {
    raise("FileError", error.what());
  } catch (const Error& error) {
    raise("Error", error.what());
  } catch (const Interrupted&) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  }
}

NB_MODULE(_core, module) {
  module.doc() = "The compiled part of headflow.";
  module.attr("version") = program_version();
  module.attr("commit") = program_commit();
  nb::register_exception_translator(translate, nullptr);

  nb::class_<Config> config(module, "Config", "Every option of headflow, as a value.");
  config.def(nb::init<>())
      .def("copy", [](const Config& self) { return Config(self); })
      .def(
          "set",
          [](Config& self, const std::string& name, const Given& value) {
            key_named(name).set(self, value_of(value));
          },
          nb::arg("name"), nb::arg("value"), "Sets a key by its full name; may raise OptionError.")
      .def(
          "get",
          [](const Config& self, const std::string& name) {
            return python_value(key_named(name).get(self));
          },
          nb::arg("name"))
      .def("text", &config_text, nb::arg("sections"), nb::arg("left_out") = Names{},
           "The values of some sections, as a configuration file.")
      .def(
          "notes", [](const Config& self) { return Problem(self.problem).notes(); },
          "Checks the problem; remarks on it that are no errors.");
  bind_own(config);

  module.def(
      "keys",
      [] {
        nb::list out;
        for (const Key& key : keys()) out.append(described(key));
        return out;
      },
      nb::sig("def keys() -> list[tuple[str, str, str, list[str]]]"),
      "(full name, help, kind, choices) of every key.");
  module.def(
      "keys_of",
      [](const std::string& computation) {
        Names out;
        for (const Key* key : keys_of(find_computation(computation).keys)) {
          out.push_back(key->full_name());
        }
        return out;
      },
      nb::arg("computation"), "Full names of the keys that a computation depends on.");
  module.def("computations", [] {
    Names out;
    for (const Computation& one : computations()) out.emplace_back(one.name);
    return out;
  });
  module.def(
      "compute", &compute, nb::arg("name"), nb::arg("config"), nb::arg("told").none(),
      nb::sig("def compute(name: str, config: Config, told: object | None) -> tuple[dict[str, "
              "object] | None, bool]"),
      "(result, interrupted): a computation, while told(kind, what) is called now and then.");
  module.def("verify", &verify, nb::arg("config"), nb::arg("told").none(),
             nb::sig("def verify(config: Config, told: object | None) -> "
                     "tuple[dict[str, object] | None, bool]"));
  module.def("stop_everything", &stop_everything);
  nb::module_::import_("atexit").attr("register")(module.attr("stop_everything"));
  bind_evaluator(module);
  bind_sweep(module);
}

}  // namespace
}  // namespace headflow::python

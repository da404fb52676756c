#include "study/task.h"

#include "study/keys.h"
#include "study/sweep_plan.h"
#include "study/version.h"

namespace headflow {

Fingerprint TaskIdentity::fingerprint() const {
  return headflow::fingerprint(program + '\n' + configuration);
}

std::string program_identity() { return program_version() + " " + program_commit(); }

TaskIdentity task_identity(Config config, const Measures& measures) {
  config.flow.init_noise = config.flow.noise();  // given or not: the same task
  return {program_identity(), config_text(config, swept_sections()) +
                                  "\n[sweep]\nmeasure = " + value_text(names_of(measures)) + "\n"};
}

Fingerprint computed_from(const Config& config) {
  return TaskIdentity{program_identity(), config_text(config, swept_sections())}.fingerprint();
}

}  // namespace headflow

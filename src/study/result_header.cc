#include "study/result_header.h"

#include <fmt/chrono.h>

#include <chrono>

#include "core/checksum.h"
#include "study/version.h"

namespace headflow {

std::vector<std::pair<std::string, AttributeValue>> result_header(const Dataset& result) {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  const std::string& configuration = result.provenance.configuration;
  return {{"title", result.title},
          {"format", result.format},
          {"format_version", std::int64_t{kResultFormatVersion}},
          {"program_version", program_version()},
          {"program_commit", program_commit()},
          {"date", fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now))},
          {"configuration", configuration},
          {"configuration_hash", fmt::format("fnv1a-64 {:016x}", checksum_of(configuration))},
          {"command", result.provenance.command}};
}

}  // namespace headflow

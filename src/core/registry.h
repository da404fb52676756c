#pragma once

// What is known by its name: what headflow brings, and what is added before anybody looks. The
// table of keys is made of all there is when it is first asked for, and then closes the registries:
// what came later would have no keys.

#include <fmt/format.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace headflow {

template <class Entry>
class Registry {
 public:
  using Pointer = std::shared_ptr<const Entry>;

  /// `kind` is for messages: "an activation".
  Registry(std::string kind, std::vector<Pointer> own)
      : kind_(std::move(kind)), all_(std::move(own)) {}

  std::vector<Pointer> all() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return all_;
  }

  /// Throws Error if there is one of that name, or if it comes too late.
  template <class NameOf>
  void add(Pointer entry, const NameOf& name_of) {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const Pointer& other : all_) {
      if (name_of(*other) != name_of(*entry)) continue;
      throw Error(fmt::format("there is {} {} already", kind_, name_of(*entry)));
    }
    if (closed_) {
      throw Error(
          fmt::format("{} {} is added too late: the table of keys is made already; add it "
                      "before the first configuration",
                      kind_, name_of(*entry)));
    }
    all_.push_back(std::move(entry));
  }

  void close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }

 private:
  mutable std::mutex mutex_;
  std::string kind_;
  std::vector<Pointer> all_;
  bool closed_ = false;
};

}  // namespace headflow

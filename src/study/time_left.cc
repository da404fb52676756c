#include "study/time_left.h"

#include <algorithm>

namespace headflow {
namespace {

constexpr double kWeight = 0.2;   // of what was expected
constexpr double kOverdue = 0.2;  // a task that takes longer than expected takes this much more

}  // namespace

TimeLeft::TimeLeft(std::vector<TaskCost> tasks, int threads)
    : tasks_(std::move(tasks)), threads_(std::max(1, threads)) {
  for (TaskCost& task : tasks_) {
    task.seconds = std::max(task.seconds, 1e-6);
    if (groups_.size() <= task.group) groups_.resize(task.group + 1);
    for (Sum* sum : {&all_, &groups_[task.group]}) {
      sum->expected += task.seconds;
      sum->open += task.seconds;
    }
  }
}

void TimeLeft::count_overdue(double now, Sum& all, std::vector<Sum>& groups) const {
  for (const auto& [task, since] : running_) {
    const double so_far = now - since;
    if (so_far <= tasks_[task].seconds) continue;
    for (Sum* sum : {&all, &groups[tasks_[task].group]}) {
      sum->done += tasks_[task].seconds;
      sum->took += so_far;
    }
  }
}

void TimeLeft::start(std::size_t task, double now) {
  running_.emplace_back(task, now);
  for (Sum* sum : {&all_, &groups_[tasks_[task].group]}) sum->open -= tasks_[task].seconds;
}

void TimeLeft::finish(std::size_t task, double now) {
  const auto at = std::ranges::find(running_, task, &std::pair<std::size_t, double>::first);
  if (at == running_.end()) return;
  for (Sum* sum : {&all_, &groups_[tasks_[task].group]}) {
    sum->done += tasks_[task].seconds;
    sum->took += now - at->second;
  }
  running_.erase(at);
}

double TimeLeft::seconds(double now) const {
  Sum all = all_;
  std::vector<Sum> groups = groups_;
  count_overdue(now, all, groups);
  const auto factor = [](const Sum& known, double expected) {
    const double weight = kWeight * known.expected;
    return (known.took + weight * expected) / (known.done + weight);
  };
  const double common = all_.expected > 0 ? factor(all, 1.0) : 1.0;
  double sum = 0, longest = 0;
  for (const Sum& group : groups) {
    if (group.open > 0) sum += factor(group, common) * group.open;
  }
  for (const auto& [task, since] : running_) {
    const double so_far = now - since;
    const double whole = factor(groups[tasks_[task].group], common) * tasks_[task].seconds;
    const double rest = std::max(whole - so_far, kOverdue * so_far);
    sum += rest;
    longest = std::max(longest, rest);
  }
  return std::max(sum / threads_, longest);
}

}  // namespace headflow

#pragma once

// What an activation trains besides m and R: named blocks of numbers, such as a bias for each head
// or one scale for all. An activation says which it has (Activation::blocks); everything else keeps
// them together, in one vector, and asks for a block by its name at most.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/matrix.h"
#include "core/names.h"
#include "model/sizes.h"

namespace headflow {

/// What a block has one number for each of.
enum class Axis { head, other_head, feature, token };
/// As dimensions of results are called.
template <>
inline constexpr Named<Axis> kNames<Axis>[] = {{Axis::head, "attention_head"},
                                               {Axis::other_head, "other_head"},
                                               {Axis::feature, "feature"},
                                               {Axis::token, "token"}};

struct BlockInfo {
  std::string name;        ///< "b": the key point.b, the variable b of a result
  std::string meaning;     ///< "bias of a head"
  std::vector<Axis> axes;  ///< none: one number; {head}: one a head
  /// Where training starts.
  std::function<double(const Sizes&)> initial = [](const Sizes&) { return 0.0; };

  std::vector<std::string> dimensions() const {
    std::vector<std::string> out;
    for (const Axis axis : axes) out.emplace_back(to_string(axis));
    return out;
  }
};

/// The blocks of an activation for given sizes, one after the other in one vector, rows first.
class BlockLayout {
 public:
  struct Entry {
    BlockInfo info;
    std::vector<Eigen::Index> shape;  ///< along the axes
    Eigen::Index offset = 0, size = 1;
    bool per_head() const { return !info.axes.empty() && info.axes[0] == Axis::head; }
  };

  BlockLayout(const std::vector<BlockInfo>& blocks, const Sizes& sizes);

  const std::vector<Entry>& entries() const { return entries_; }
  Eigen::Index size() const { return size_; }
  const Sizes& sizes() const { return sizes_; }
  const Entry* find(std::string_view name) const;  ///< null if there is none

 private:
  std::vector<Entry> entries_;
  Eigen::Index size_ = 0;
  Sizes sizes_;
};

/// Values of blocks, or derivatives with respect to them.
class Blocks {
 public:
  Blocks() = default;  ///< none
  /// Zeros.
  explicit Blocks(std::shared_ptr<const BlockLayout> layout)
      : layout_(std::move(layout)), values_(Vector::Zero(layout_->size())) {}

  /// Numbers alone, of a layout that is not known here.
  explicit Blocks(Vector values) : values_(std::move(values)) {}

  Eigen::Index size() const { return values_.size(); }
  const Vector& values() const { return values_; }
  Vector& values() { return values_; }
  const double* data() const { return values_.data(); }
  double* data() { return values_.data(); }

  /// Empty if there are none.
  const std::vector<BlockLayout::Entry>& entries() const;
  bool has(std::string_view name) const { return layout_ && layout_->find(name); }
  /// The numbers of a block, rows first. Throws Error if there is none of that name.
  Eigen::Map<Vector> operator[](std::string_view name);
  Eigen::Map<const Vector> operator[](std::string_view name) const;

  /// Those of some heads only, along every axis of heads.
  Blocks of_heads(const std::vector<int>& heads) const;

  const std::shared_ptr<const BlockLayout>& layout() const { return layout_; }

 private:
  const BlockLayout::Entry& entry(std::string_view name) const;
  std::shared_ptr<const BlockLayout> layout_;
  Vector values_;
};

}  // namespace headflow

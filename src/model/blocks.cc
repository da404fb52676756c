#include "model/blocks.h"

#include <algorithm>

#include "core/error.h"

namespace headflow {
namespace {

int size_along(Axis axis, const Sizes& sizes) {
  switch (axis) {
    case Axis::head:
    case Axis::other_head: return sizes.H;
    case Axis::feature: return sizes.F;
    case Axis::token: return sizes.L;
  }
  return 1;
}

}  // namespace

BlockLayout::BlockLayout(const std::vector<BlockInfo>& blocks, const Sizes& sizes) : sizes_(sizes) {
  for (const BlockInfo& info : blocks) {
    Entry entry{info, {}, size_, 1};
    for (const Axis axis : info.axes) {
      entry.shape.push_back(size_along(axis, sizes));
      entry.size *= entry.shape.back();
    }
    size_ += entry.size;
    entries_.push_back(std::move(entry));
  }
}

const BlockLayout::Entry* BlockLayout::find(std::string_view name) const {
  const auto it = std::ranges::find(entries_, name, [](const Entry& e) { return e.info.name; });
  return it == entries_.end() ? nullptr : &*it;
}

const std::vector<BlockLayout::Entry>& Blocks::entries() const {
  static const std::vector<BlockLayout::Entry> none;
  return layout_ ? layout_->entries() : none;
}

const BlockLayout::Entry& Blocks::entry(std::string_view name) const {
  if (layout_) {
    if (const BlockLayout::Entry* found = layout_->find(name)) return *found;
  }
  throw Error(fmt::format("this activation has no block {}", name));
}

Eigen::Map<Vector> Blocks::operator[](std::string_view name) {
  const BlockLayout::Entry& e = entry(name);
  return {values_.data() + e.offset, e.size};
}

Eigen::Map<const Vector> Blocks::operator[](std::string_view name) const {
  const BlockLayout::Entry& e = entry(name);
  return {values_.data() + e.offset, e.size};
}

Blocks Blocks::of_heads(const std::vector<int>& heads) const {
  if (!layout_) return {};
  std::vector<BlockInfo> infos;
  for (const BlockLayout::Entry& e : entries()) infos.push_back(e.info);
  Sizes sizes = layout_->sizes();
  sizes.H = static_cast<int>(heads.size());
  Blocks out(std::make_shared<const BlockLayout>(infos, sizes));
  for (std::size_t b = 0; b < entries().size(); ++b) {
    const BlockLayout::Entry &from = entries()[b], &to = out.entries()[b];
    for (Eigen::Index i = 0; i < to.size; ++i) {
      // Along an axis of heads, number k is that of head heads[k].
      Eigen::Index rest = i, stride = 1, at = 0;
      for (std::size_t d = to.shape.size(); d-- > 0;) {
        const Eigen::Index k = rest % to.shape[d];
        const Axis axis = to.info.axes[d];
        const bool of_head = axis == Axis::head || axis == Axis::other_head;
        at += stride * (of_head ? heads[static_cast<std::size_t>(k)] : k);
        rest /= to.shape[d];
        stride *= from.shape[d];
      }
      out.values_[to.offset + i] = values_[from.offset + at];
    }
  }
  return out;
}

}  // namespace headflow

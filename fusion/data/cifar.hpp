#pragma once
/// Files of the binary version of CIFAR-10 and CIFAR-100: records of labels, one byte each, and an image of 3 x 32 x 32
/// bytes (https://www.cs.toronto.edu/~kriz/cifar.html). Internal to fusion/data.

#include <memory>
#include <string>

#include "fusion/data/array_file.hpp"

namespace hfta::fusion {

/// The array of that name: "x", the images, [N, 3, 32, 32]; "y", the labels; where a record has two, also "coarse" and
/// "fine", and "y" is the latter. `labels`: their number in a record, 1 or 2. Throws Error{kConfig} for
/// other names and for bytes that are no whole records; its message begins with `place`.
[[nodiscard]] StoredArray cifar_array(const std::shared_ptr<const ByteSource>& file, int labels,
                                      const std::string& name, Use use, const std::string& place);

}  // namespace hfta::fusion

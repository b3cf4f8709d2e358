#include "fusion/pt2/stack_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <vector>

namespace hfta::fusion::pt2 {
namespace {

enum class Code { kUser, kLayer, kMachinery };

Code kind_of(std::string_view file) {
  if (file.find("/torch/nn/") != std::string_view::npos) return Code::kLayer;
  const bool machinery = file.starts_with("torch/") || file.find("/torch/") != std::string_view::npos;
  return machinery || file.starts_with('<') ? Code::kMachinery : Code::kUser;
}

struct Frame {
  std::string_view file, line, function;
  std::string_view code = {};  ///< "" if the trace does not show it.
  Code kind = kind_of(file);
};

std::optional<Frame> frame_of(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ", kIn = ", in ";
  const std::size_t file = line.find(kFile), number = line.find(kLine);
  if (file == std::string_view::npos || number == std::string_view::npos || number < file + kFile.size()) return {};
  const std::size_t begin = file + kFile.size(), digits = number + kLine.size();
  const std::size_t end = std::min(line.find_first_not_of("0123456789", digits), line.size());
  const bool named = line.substr(end).starts_with(kIn);
  return Frame{line.substr(begin, number - begin), line.substr(digits, end - digits),
               named ? line.substr(end + kIn.size()) : std::string_view()};
}

std::vector<Frame> frames_of(std::string_view trace) {
  std::vector<Frame> frames;
  while (!trace.empty()) {
    const std::string_view line = trace.substr(0, trace.find('\n'));
    trace.remove_prefix(std::min(line.size() + 1, trace.size()));
    if (const std::optional<Frame> frame = frame_of(line)) {
      frames.push_back(*frame);
    } else if (!frames.empty() && frames.back().code.empty()) {
      frames.back().code = line;
    }
  }
  return frames;
}

std::string place_of(const Frame& frame) {
  return fmt::format("{}:{}", frame.file.substr(frame.file.rfind('/') + 1), frame.line);
}

// "Spike.apply" in a line that calls it so; "" in any other.
std::string_view applied_in(std::string_view code) {
  constexpr std::string_view kApply = ".apply";
  const std::size_t dot = code.find(".apply(");
  if (dot == std::string_view::npos) return {};
  std::size_t begin = dot;
  const auto is_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.'; };
  while (begin > 0 && is_name(code[begin - 1])) --begin;
  return code.substr(begin, dot + kApply.size() - begin);
}

// "self.head.forward(x)": a module's forward that is no call of the module. A line that applies a function as well may
// stand for either.
bool calls_by_name(std::string_view code) {
  return code.find(".forward(") != std::string_view::npos && applied_in(code).empty();
}

}  // namespace

std::string where_from(const std::string& trace) {
  std::string place;
  bool users = false;
  for (const Frame& frame : frames_of(trace)) {
    if (frame.kind == Code::kMachinery || (frame.kind == Code::kLayer && users)) continue;
    users = frame.kind == Code::kUser;
    place = place_of(frame);
  }
  return place;
}

std::string function_from(const std::string& trace, std::size_t modules) {
  std::vector<Frame> frames = frames_of(trace);
  std::erase_if(frames, [](const Frame& frame) { return frame.kind != Code::kUser; });
  std::size_t forwards = 0;
  const Frame* caller = nullptr;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    if (frames[i].function != "forward" || (i > 0 && calls_by_name(frames[i - 1].code))) continue;
    ++forwards;
    if (i > 0) caller = &frames[i - 1];
  }
  if (forwards <= modules || caller == nullptr) return "";
  const std::string_view name = applied_in(caller->code);
  return name.empty() ? place_of(*caller) : fmt::format("{}: {}", place_of(*caller), name);
}

}  // namespace hfta::fusion::pt2

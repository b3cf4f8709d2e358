#include "pt2_text.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <type_traits>

#include "base/error.hpp"
#include "fusion/pt2/archive.hpp"
#include "tests/source_folder.hpp"

namespace hfta::fusion::test {
namespace {

std::string name_of_value(ValueId value, const Graph& graph) {
  return value == kNoValue ? "_" : "%" + graph.values.at(static_cast<std::size_t>(value)).name;
}

std::string text_of(const Arg& arg, const Graph& graph) {
  const auto list = [](const auto& items, auto text) {
    std::vector<std::string> texts;
    for (const auto& item : items) texts.push_back(text(item));
    return fmt::format("[{}]", fmt::join(texts, ", "));
  };
  const auto value = [&](ValueId id) { return name_of_value(id, graph); };
  return std::visit(
      [&](const auto& a) -> std::string {
        using T = std::decay_t<decltype(a)>;
        if constexpr (std::is_same_v<T, std::monostate>) return "None";
        if constexpr (std::is_same_v<T, ValueId>) return value(a);
        if constexpr (std::is_same_v<T, std::vector<ValueId>>) return list(a, value);
        if constexpr (std::is_same_v<T, std::int64_t> || std::is_same_v<T, double> || std::is_same_v<T, bool>) {
          return fmt::format("{}", a);
        }
        if constexpr (std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<double>>) {
          return list(a, [](auto number) { return fmt::format("{}", number); });
        }
        if constexpr (std::is_same_v<T, HyperRef>) return "$" + graph.hypers.at(static_cast<std::size_t>(a.index)).path;
        if constexpr (std::is_same_v<T, std::string>) return "'" + a + "'";
        if constexpr (std::is_same_v<T, std::vector<Size>>) {
          return list(a, [&](const Size& size) {
            return size.value == kNoValue ? std::to_string(size.number) : value(size.value);
          });
        }
        if constexpr (std::is_same_v<T, DType>) return name_of(a);
        if constexpr (std::is_same_v<T, ArrayDevice>) return "device";
        if constexpr (std::is_same_v<T, Complex>) return fmt::format("{}+{}j", a.real, a.imag);
      },
      arg);
}

std::uint32_t crc32(const std::string& bytes) {
  std::uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

std::string little_endian(std::uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

// What local and central headers share: versions, flags, method, time, date, checksum, sizes, lengths of name and
// extra.
std::string header_fields(const Member& member, std::size_t name_length) {
  const std::size_t size = member.bytes.size();
  return little_endian(20, 2) + std::string(8, '\0') + little_endian(crc32(member.bytes), 4) + little_endian(size, 4) +
         little_endian(size, 4) + little_endian(name_length, 2) + little_endian(0, 2);
}

}  // namespace

std::string golden(const std::string& name) {
  return (hfta::testing::source_folder() / "tests/fusion/pt2/golden" / (name + ".pt2")).string();
}

std::vector<std::byte> bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  return {bytes.begin(), bytes.end()};
}

std::string text_of(const Node& node, const Graph& graph) {
  std::vector<std::string> outputs;
  for (const ValueId output : node.outputs) {
    const bool none = output == kNoValue;
    outputs.push_back(
        none ? "_" : name_of_value(output, graph) + to_text(graph.values.at(static_cast<std::size_t>(output)).shape));
  }
  std::vector<std::string> args;
  for (std::size_t i = 0; i < node.args.size(); ++i) {
    const std::string name = i < node.names.size() && !node.names[i].empty() ? node.names[i] + "=" : "";
    args.push_back(name + text_of(node.args[i], graph));
  }
  return fmt::format("{} = {}({}) @{} {}{}", fmt::join(outputs, ", "), node.op, fmt::join(args, ", "), node.path,
                     node.where, node.no_gradient ? " no_grad" : "");
}

std::string text_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) text += text_of(node, graph) + "\n";
  return text;
}

std::string weights_text(const Graph& graph) {
  std::string text;
  for (const Weight& weight : graph.weights) {
    text += fmt::format("{} {} {}{}", weight.name, to_text(weight.shape), name_of(weight.dtype),
                        weight.trained ? " trained" : "");
    for (const std::string& name : weight.tied) text += " = " + name;
    text += "\n";
  }
  return text;
}

namespace {

template <typename Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    const std::string message = error.what();
    if (error.kind() != ErrorKind::kConfig) return "(wrong kind) " + message;
    if (message.find('\n') != std::string::npos) return "(several lines) " + message;
    return message;
  }
  return "(none)";
}

}  // namespace

std::string error_of(std::span<const std::byte> archive) {
  return message_of([&] { (void)ExportedModel::parse(archive, "m.pt2").graph({}); });
}

std::string error_of(const ExportedModel& model, const ImportOptions& options) {
  return message_of([&] { (void)model.graph(options); });
}

std::vector<Member> unpack(std::span<const std::byte> archive) {
  const pt2::Archive zip = pt2::Archive::view(archive, "golden");
  std::vector<Member> members;
  for (const std::string& name : zip.members()) {
    const std::vector<std::byte> bytes = zip.read(name);
    members.push_back({name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size())});
  }
  return members;
}

std::vector<std::byte> pack(const std::vector<Member>& members, const std::string& root) {
  std::string zip;
  std::string directory;
  for (const Member& member : members) {
    const std::string name = root + member.name;
    const std::string fields = header_fields(member, name.size());
    directory += "PK\1\2" + little_endian(20, 2) + fields + std::string(10, '\0') + little_endian(zip.size(), 4) + name;
    // The central header begins with a version more than the local one.
    zip += "PK\3\4" + fields + name + member.bytes;
  }
  const std::size_t start = zip.size();
  zip += directory + "PK\5\6" + std::string(4, '\0') + little_endian(members.size(), 2) +
         little_endian(members.size(), 2) + little_endian(directory.size(), 4) + little_endian(start, 4) +
         std::string(2, '\0');
  const auto bytes = std::as_bytes(std::span(zip.data(), zip.size()));
  return {bytes.begin(), bytes.end()};
}

}  // namespace hfta::fusion::test

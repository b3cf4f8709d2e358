#pragma once
/// A command's arguments, over Boost.Program_options.

#include <boost/program_options.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace hfta::engine {

/// What a command accepts.
struct Usage {
  std::string synopsis;                                 ///< "hfta-tune report [STUDY] --storage URL [options]"
  std::string about;                                    ///< A few lines for --help.
  boost::program_options::options_description options;  ///< Without --help, which every command has.
  std::vector<std::string> positional;                  ///< Names of the words, all optional here.
};

/// The parsed arguments.
class Arguments {
 public:
  /// Throws Error{kConfig}, one line: unknown options with the nearest known one, missing and malformed values, too
  /// many words.
  Arguments(const Usage& usage, const std::vector<std::string>& words);

  /// Whether --help was given; nothing else was looked at then.
  [[nodiscard]] bool help() const { return help_; }
  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) > 0; }
  /// The value of an option or word; nullopt if it was not given.
  template <typename T>
  [[nodiscard]] std::optional<T> get(const std::string& name) const {
    return has(name) ? std::optional<T>(values_[name].as<T>()) : std::nullopt;
  }
  /// The value of an option or word that must be given. Throws Error{kConfig} with `synopsis`.
  [[nodiscard]] std::string required(const std::string& name) const;

 private:
  boost::program_options::variables_map values_;
  std::string synopsis_;
  bool help_ = false;
};

/// The text that --help prints.
[[nodiscard]] std::string help_text(const Usage& usage);

/// `value`, one of `allowed`. Throws Error{kConfig}: "--format: found 'xml', wanted table, json or csv".
[[nodiscard]] std::string one_of(const std::string& option, const std::string& value,
                                 const std::vector<std::string>& allowed);

}  // namespace hfta::engine

#include "engine/cli/arguments.hpp"

#include <algorithm>
#include <sstream>

#include "base/error.hpp"
#include "base/text.hpp"

namespace hfta::engine {

namespace po = boost::program_options;

namespace {

std::vector<std::string> option_names(const Usage& usage) {
  std::vector<std::string> names = {"--help"};
  for (const auto& option : usage.options.options()) names.push_back("--" + option->long_name());
  return names;
}

Error wrong(const std::string& what) { return {ErrorKind::kConfig, what + "; see --help"}; }

}  // namespace

Arguments::Arguments(const Usage& usage, const std::vector<std::string>& words) : synopsis_(usage.synopsis) {
  help_ = std::any_of(words.begin(), words.end(), [](const auto& word) { return word == "--help" || word == "-h"; });
  if (help_) return;
  po::options_description all;
  all.add(usage.options);
  po::positional_options_description order;
  for (const std::string& name : usage.positional) {
    all.add_options()(name.c_str(), po::value<std::string>());
    order.add(name.c_str(), 1);
  }
  // No guessing: --s must not become --set today and something else after the next release.
  const int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
  try {
    po::store(po::command_line_parser(words).options(all).positional(order).style(style).run(), values_);
    po::notify(values_);
  } catch (const po::unknown_option& error) {
    const std::string name = printable(error.get_option_name());
    throw Error(ErrorKind::kConfig, "unknown option " + name + suggestion(name, option_names(usage)));
  } catch (const po::too_many_positional_options_error&) {
    throw wrong("too many words, wanted: " + usage.synopsis);
  } catch (const po::multiple_occurrences& error) {
    throw wrong("option " + printable(error.get_option_name()) + " is given more than once");
  } catch (const po::error& error) {
    throw wrong(printable(error.what()));
  }
}

std::string Arguments::required(const std::string& name) const {
  if (auto value = get<std::string>(name)) return *value;
  throw wrong(name + " is missing, wanted: " + synopsis_);
}

std::string help_text(const Usage& usage) {
  std::ostringstream text;
  text << "usage: " << usage.synopsis << "\n\n" << usage.about << "\n";
  po::options_description all("options", 100, 60);
  for (const auto& option : usage.options.options()) all.add(option);
  all.add_options()("help,h", "this text");
  text << all;
  return text.str();
}

std::string one_of(const std::string& option, const std::string& value, const std::vector<std::string>& allowed) {
  if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) return value;
  throw Error(ErrorKind::kConfig, option + ": found '" + printable(value) + "', wanted one of " + join(allowed));
}

}  // namespace hfta::engine

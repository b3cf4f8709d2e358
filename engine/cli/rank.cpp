// hfta-tune rank: the command that hfta-tune itself starts for each rank behind the first of a device of several.

#include <sys/stat.h>

#include <csignal>
#include <exception>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.hpp"
#include "engine/cli/commands.hpp"
#include "engine/cli/number_option.hpp"
#include "engine/cli/output.hpp"
#include "engine/parallel/member.hpp"
#include "engine/parallel/serve.hpp"
#include "engine/parallel/start.hpp"
#include "fusion/collectives/shared_memory.hpp"

namespace hfta::engine {
namespace {

namespace po = boost::program_options;

Usage rank_usage() {
  Usage usage;
  usage.synopsis = "hfta-tune rank --rank R --channel C --seat S";
  usage.about = "Trains as the process says that has started this one: for hfta-tune itself.\n";
  usage.options.add_options()("rank", po::value<int>()->value_name("R"), "which of the device's ranks")(
      "channel", po::value<int>()->value_name("C"), "a descriptor: the stream from that process")(
      "seat", po::value<int>()->value_name("S"), "a descriptor: the rank's seat in its group");
  return usage;
}

Descriptor given(const Arguments& arguments, const char* option) {
  constexpr int kMost = 1 << 20;
  const int number = number_option(arguments, option, 0, 3, kMost);
  struct stat status = {};
  if (::fstat(number, &status) != 0) {
    throw Error(ErrorKind::kConfig, fmt::format("--{}: found no open descriptor {}, wanted one: this command is for "
                                                "hfta-tune itself",
                                                option, number));
  }
  return Descriptor(number);
}

// Ignores signals: rank 0 answers them, and this rank ends when the stream to it does.
void leave_signals_to_rank_0() {
  for (const int signal : kSignalsOfRank0) std::signal(signal, SIG_IGN);
}

}  // namespace

int rank_command(const Words& words) {
  const Usage usage = rank_usage();
  const Arguments arguments(usage, words);
  if (arguments.help()) return print(help_text(usage)), 0;
  const int rank = number_option(arguments, "rank", 0, 1, fusion::kMostRanks - 1);
  Channel channel(given(arguments, "channel"));
  Descriptor seat = given(arguments, "seat");
  leave_signals_to_rank_0();
  const std::optional<nlohmann::json> start = channel.receive();
  if (!start) return 0;
  std::unique_ptr<RankTrainer> trainer;
  try {
    TrainerOptions options = options_from(*start);
    options.group = fusion::take_seat(std::move(seat), rank);
    trainer = load_torch_module().make_trainer(options);
  } catch (const std::exception& error) {
    send_error(channel, error);
    return 0;
  }
  serve(channel, *trainer, faults_from_environment());
  return 0;
}

}  // namespace hfta::engine

// Processes as members, and how they are told what to be.
#include "engine/parallel/member.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "engine/parallel/start.hpp"
#include "fusion/collectives/shared_memory.hpp"

namespace hfta::engine::testing {
namespace {

constexpr const char* kConfig =
    "data: {name: digits, batch_size: 16}\n"
    "model: {layers: [flatten, {linear: [64, 10]}]}\n"
    "train: {loss: cross_entropy, optimizer: {name: sgd, lr: \"${lr}\"}, epochs: 2}\n"
    "metric: {name: train_loss, goal: minimize}\n"
    "parameters: {lr: {min: 0.001, max: 0.1}}\n"
    "run_cap: 4\n";

}  // namespace

TEST_CASE("a member that cannot be started is an error, one that ends says how") {
  CHECK_THROWS_AS(start_member("/nowhere/hfta-tune", 1, std::move(fusion::make_seats(2)[1])), Error);
  const auto member = start_member("/bin/false", 1, std::move(fusion::make_seats(2)[1]));
  CHECK_FALSE(member->channel().receive().has_value());
  CHECK_THAT(member->ended(), Catch::Contains("ended with code 1"));
}

TEST_CASE("signals that rank 0 answers do not end a member that has not ignored them yet") {
  const auto path = std::filesystem::temp_directory_path() / ("hfta_member_" + std::to_string(::getpid()));
  std::ofstream(path) << "#!/bin/sh\nfor s in INT TERM HUP USR1; do kill -$s $$; done\nexit 3\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  const auto member = start_member(path, 1, std::move(fusion::make_seats(2)[1]));
  CHECK_FALSE(member->channel().receive().has_value());
  CHECK_THAT(member->ended(), Catch::Contains("ended with code 3"));
  std::filesystem::remove(path);
}

TEST_CASE("a rank whose member has ended has ended in its group") {
  std::vector<Descriptor> seats = fusion::make_seats(2);
  const auto own = fusion::take_seat(std::move(seats[0]), 0);
  const auto member = start_member("/bin/true", 1, std::move(seats[1]));
  CHECK_THROWS_WITH(own->barrier(), Catch::Contains("rank 1 of 2 has ended"));
}

TEST_CASE("a trainer's options arrive whole in another process") {
  TrainerOptions options{
      parse_config(kConfig, "a/s.yaml", {{"seed", "5"}, {"run_cap", "3"}}), "cpu", "cpu:2+cpu:2", 4, "/data", {}};
  options.threads = 2;
  options.cpus = {1, 3};
  const TrainerOptions found = options_from(start_json(options));
  CHECK(found.config.normalized == options.config.normalized);
  CHECK(found.config.seed == 5);
  CHECK(found.config.folder == options.config.folder);
  CHECK(found.config.choice.has_value() == options.config.choice.has_value());
  CHECK(found.device == "cpu");
  CHECK(found.label == "cpu:2+cpu:2");
  CHECK(found.sharers == 4);
  CHECK(found.data_root == "/data");
  CHECK(found.threads == 2);
  CHECK(found.cpus == std::vector{1, 3});
  CHECK(found.cache.empty());
  CHECK(found.group == nullptr);
}

}  // namespace hfta::engine::testing

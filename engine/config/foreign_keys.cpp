#include <map>

#include "engine/config/keys.hpp"

namespace hfta::engine::configuration {

std::string foreign_key_message(std::string_view path) {
  const std::string later = "which is not available in this version; ";
  const std::string wandb =
      "which has no meaning here, wanted the search part of a W&B sweep alone (method, metric, "
      "parameters, run_cap), beside model, data and train";
  static const std::map<std::string, std::string, std::less<>> messages = {
      {"program", wandb},
      {"command", wandb},
      {"entity", wandb},
      {"project", wandb},
      {"controller", wandb},
      {"name", wandb + " (the study's name is `study`)"},
      {"description", wandb + " (a comment can hold it)"},
      {"model.zoo", later + "wanted model.layers or model.file"},
      {"parameters.*.parameters", later + "nested parameters can be written side by side, with names of their own"},
  };
  const auto found = messages.find(path);
  return found == messages.end() ? std::string() : "found this key, " + found->second;
}

}  // namespace hfta::engine::configuration

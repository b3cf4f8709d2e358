#include "engine/config/key_tables.hpp"

namespace hfta::engine::configuration {

std::vector<Key> adapter_keys() {
  const Searched shape = Searched::kShape, slot = Searched::kPerSlot;
  return {
      {.path = "model.adapters",
       .type = KeyType::kSection,
       .fallback = "none",
       .only = {"file"},
       .searched = shape,
       .sentence = "Small adapters are trained in place of the model's parameters, which are frozen and held once for "
                   "all trials: [Fine-tuning](finetuning.md)."},
      {.path = "model.adapters.lora",
       .type = KeyType::kSection,
       .searched = shape,
       .wanted = "auto, or a map",
       .sentence = "LoRA (arXiv:2106.09685), a map of the keys below; `auto` adds rank, alpha and dropout to the "
                   "parameters, and the rate and early stopping if the config leaves them out: [The ready "
                   "space](finetuning.md#the-ready-space)."},
      {.path = "model.adapters.train",
       .type = KeyType::kOther,
       .fallback = "none",
       .searched = shape,
       .wanted = "a name or a list of names",
       .sentence = "Parameters that are trained beside the adapters, such as a new head: PEFT's `modules_to_save`. By "
                   "their names in the model; `*` matches anything: `[classifier]`."},
      {.path = "model.adapters.lora.targets",
       .type = KeyType::kOther,
       .fallback = "all-linear",
       .searched = shape,
       .wanted = "a name or a list of names",
       .sentence =
           "Linear layers, convolutions and embeddings that are adapted, by the end of their path in the model; "
           "`*` matches anything: `[q_proj, v_proj]`. `all-linear`: every linear layer but the last."},
      {.path = "model.adapters.lora.rank",
       .type = KeyType::kInteger,
       .fallback = "8",
       .least = 1,
       .most = 4096,
       .searched = Searched::kPadded,
       .sentence = "Rank of the adapters. Trials of all ranks share an array: adapters are padded with zeros to the "
                   "largest rank of the study, which changes no trial's numbers but by rounding."},
      {.path = "model.adapters.lora.alpha",
       .fallback = "the rank",
       .least = 0,
       .above = true,
       .searched = slot,
       .sentence = "What the adapters' output is multiplied by is alpha / rank, or as `scale` has it."},
      {.path = "model.adapters.lora.dropout",
       .fallback = "none",
       .least = 0,
       .most = 1,
       .below = true,
       .searched = slot,
       .sentence = "Rate of dropout in front of the adapters."},
      {.path = "model.adapters.lora.scale",
       .type = KeyType::kChoice,
       .fallback = "standard",
       .choices = {"standard", "rslora"},
       .searched = slot,
       .sentence = "alpha / rank, or alpha / sqrt(rank) (rsLoRA, arXiv:2312.03732)."},
  };
}

}  // namespace hfta::engine::configuration
